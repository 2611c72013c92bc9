package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
)

// Grants and messages show these words, and the API's enumerations spell them alike.
func TestVocabularyIsSpelledAsItIsShown(t *testing.T) {
	presences := []string{policy.Unknown.String(), policy.Absent.String(), policy.Present.String(), policy.Presence(9).String()}
	if diff := cmp.Diff([]string{"Unknown", "Absent", "Present", "Unknown"}, presences); diff != "" {
		t.Errorf("presences (-want +got):\n%s", diff)
	}
	var provenances []string
	for p := range policy.Authoritative + 2 {
		provenances = append(provenances, p.String())
	}
	if diff := cmp.Diff([]string{"", "Declared", "Catalogued", "Parsed", "Authoritative", ""}, provenances); diff != "" {
		t.Errorf("provenances (-want +got):\n%s", diff)
	}
	var classes []string
	for c := range policy.ClassForbidden + 2 {
		classes = append(classes, c.String())
	}
	if diff := cmp.Diff([]string{"", "AUTO", "AUTO_WITH_DISCLOSURE", "ASK", "FORBIDDEN", ""}, classes); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

func TestAFactThatIsNoneHasNoName(t *testing.T) {
	if got := policy.Fact(len(policy.AllFacts())).String(); got != "" {
		t.Errorf("the fact after the last is called %q", got)
	}
}

// A capability that nobody gave the session is refused, whatever the operation is (requirement A-3).
func TestACapabilityThatTheSessionLacksIsOutsideItsAuthority(t *testing.T) {
	engine := compile(t, under(policy.Policy{}))
	by := session()
	by.Authority.Capabilities = []policy.Capability{policy.CapabilityReadContext}
	d := engine.Decide(update(harmless()), by, now)
	if d.Class != policy.ClassForbidden || d.Reason != policy.ReasonOutsideAuthority || d.Boundary != policy.BoundaryDelegation {
		t.Errorf("answer %s %s of boundary %s, want FORBIDDEN OutsideAuthority of DelegatedOwnership", d.Class, d.Reason, d.Boundary)
	}
}

// A state that is not known to cover the caller gives its own reason where it has one.
func TestASessionThatIsMissingSaysWhy(t *testing.T) {
	engine := compile(t, under(policy.Policy{}))
	for _, reason := range []policy.Reason{policy.ReasonNoSession, policy.ReasonSessionPending, policy.ReasonCredentialUnbound} {
		by := policy.SessionView{State: policy.SessionMissing, StateReason: reason, Namespace: "checkout"}
		if d := engine.Decide(update(harmless()), by, now); d.Verdict != policy.VerdictDeny || d.Reason != reason {
			t.Errorf("answer %s %s, want Deny %s", d.Verdict, d.Reason, reason)
		}
	}
	if d := engine.Decide(update(harmless()), policy.SessionView{Namespace: "checkout"}, now); d.Reason != policy.ReasonNoSession {
		t.Errorf("a session that is not filled in is answered with %s, want NoSession", d.Reason)
	}
}
