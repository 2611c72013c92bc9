package grant

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

const (
	digest       = "v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"
	otherDigest  = "v1:2706c619fe73f0cf112473c6ee02e66c04e1c01c110b0c37b88d8eb509630c9f"
	grantUID     = types.UID("7e6ab0aa-3d2e-4b47-9d0a-94b1b7a2f001")
	agent        = "system:serviceaccount:checkout:agent"
	policiesThen = "v1:1111111111111111111111111111111111111111111111111111111111111111"
	policiesNow  = "v1:2222222222222222222222222222222222222222222222222222222222222222"
)

var (
	asked0   = time.Date(2026, 11, 30, 18, 5, 31, 0, time.UTC)
	decideBy = time.Date(2026, 12, 1, 10, 5, 31, 0, time.UTC)
	answered = time.Date(2026, 11, 30, 18, 31, 55, 0, time.UTC)
	usedBy   = answered.Add(4 * time.Hour)
)

type change func(*v1alpha1.PermissionGrant)

// grantWith is a pending question about one deletion that needs one person, changed as said.
func grantWith(changes ...change) *v1alpha1.PermissionGrant {
	g := &v1alpha1.PermissionGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "pg-7l3yy3mzxzd4pzlg", UID: grantUID, Generation: 1},
		Spec: v1alpha1.PermissionGrantSpec{Request: v1alpha1.PermissionRequest{
			Type: v1alpha1.RequestExact, Digest: digest, Question: 1, Stage: v1alpha1.StageExecute,
			Session:   v1alpha1.GrantSession{Namespace: "checkout", Name: "fix-latency-9c1f0", UID: "session", Epoch: 3},
			Requester: v1alpha1.Requester{Username: agent, OnBehalfOf: "carla@acme.example"},
			Operation: v1alpha1.GrantOperation{
				Capability: v1alpha1.CapabilityExecuteLocal, Verb: v1alpha1.VerbDelete,
				Target:  v1alpha1.GrantTarget{Version: "v1", Resource: "persistentvolumeclaims", Namespace: "checkout", Name: "data-postgres-0"},
				Summary: "delete persistentvolumeclaims checkout/data-postgres-0",
			},
			Requirements: []v1alpha1.GrantRequirement{{Name: "standard/one-person", Required: 1}},
			MaxUses:      1, DecideByTime: metav1.NewTime(decideBy), UseWithinSeconds: 14400,
		}},
	}
	for _, change := range changes {
		change(g)
	}
	return g
}

func requirements(list ...v1alpha1.GrantRequirement) change {
	return func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Requirements = list }
}

// decided appends an answer as the webhook stamps it, and changes it as said.
func decided(verdict v1alpha1.Verdict, approver string, changes ...func(*v1alpha1.GrantDecision)) change {
	return func(g *v1alpha1.PermissionGrant) {
		at := metav1.NewTime(answered)
		d := v1alpha1.GrantDecision{
			Approver: approver, Verdict: verdict, ShownDigest: digest, Scope: v1alpha1.GrantScope{Type: v1alpha1.ScopeExact},
			DecidedTime: &at, GrantUID: grantUID, PolicyIdentity: policiesNow,
		}
		for _, change := range changes {
			change(&d)
		}
		g.Spec.Decisions = append(g.Spec.Decisions, d)
		g.Generation++
	}
}

func approved(approver string, changes ...func(*v1alpha1.GrantDecision)) change {
	return decided(v1alpha1.VerdictApprove, approver, changes...)
}

func inGroups(groups ...string) func(*v1alpha1.GrantDecision) {
	return func(d *v1alpha1.GrantDecision) { d.ApproverGroups = groups }
}

func at(when time.Time) func(*v1alpha1.GrantDecision) {
	return func(d *v1alpha1.GrantDecision) { d.DecidedTime = &metav1.Time{Time: when} }
}

func revoked(g *v1alpha1.PermissionGrant) {
	g.Spec.Revocation = &v1alpha1.Revocation{Reason: "wrong claim", By: "ben@acme.example", Time: &metav1.Time{Time: answered.Add(time.Minute)}}
}

func used(outcome v1alpha1.UseOutcome) change {
	return func(g *v1alpha1.PermissionGrant) {
		use := v1alpha1.GrantUse{
			Index: int32(len(g.Status.Uses) + 1), Outcome: outcome, ReservedTime: metav1.NewTime(answered.Add(time.Hour)),
			Attempts: []v1alpha1.UseAttempt{{ReviewUID: "review"}},
		}
		if outcome != v1alpha1.UseReserved {
			use.SettledTime = &metav1.Time{Time: answered.Add(time.Hour + time.Second)}
		}
		g.Status.Uses = append(g.Status.Uses, use)
	}
}

func stored(state v1alpha1.GrantState, reason v1alpha1.ConditionReason) change {
	return func(g *v1alpha1.PermissionGrant) { g.Status.State, g.Status.Reason = state, reason }
}

// Proves G-2, G-4, G-5, G-6, G-9.
func TestTheStateFollowsFromAnswersUsesAndTime(t *testing.T) {
	twoPeople := requirements(v1alpha1.GrantRequirement{Name: "data-loss", Required: 2})
	owners := requirements(
		v1alpha1.GrantRequirement{Name: "one-person", Required: 1},
		v1alpha1.GrantRequirement{Name: "owners", Required: 1, ApproverGroups: []string{"acme:owners", "acme:sre"}})
	type result struct {
		State     v1alpha1.GrantState
		Reason    v1alpha1.ConditionReason
		Approvals string
		UsesLeft  int32 // -1: not shown
	}
	pending := func(approvals string) result {
		return result{v1alpha1.GrantPending, v1alpha1.ReasonAwaitingApproval, approvals, -1}
	}
	usable := func(approvals string) result {
		return result{v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet, approvals, 1}
	}
	tests := []struct {
		name  string
		grant *v1alpha1.PermissionGrant
		now   time.Time
		want  result
	}{
		{"a new question waits", grantWith(), asked0, pending("0/1")},
		{"one approval meets one requirement", grantWith(approved("ben")), answered, usable("1/1")},
		{"one of two approvals leaves it pending", grantWith(twoPeople, approved("ben")), answered, pending("1/2")},
		{"two people approve", grantWith(twoPeople, approved("ben"), approved("carla")), answered, usable("2/2")},
		{"one person counts once", grantWith(twoPeople, approved("ben"), approved("ben")), answered, pending("1/2")},
		{"one person under two names counts once", grantWith(twoPeople,
			approved("ben", func(d *v1alpha1.GrantDecision) { d.ApproverUID = "u1" }),
			approved("benjamin", func(d *v1alpha1.GrantDecision) { d.ApproverUID = "u1" })), answered, pending("1/2")},
		{"an approver outside the groups meets only the open requirement", grantWith(owners, approved("ben", inGroups("acme:dev"))), answered, pending("0/1")},
		{"an approver of one of the groups meets both", grantWith(owners, approved("ben", inGroups("acme:sre"))), answered, usable("1/1")},
		{"no requirement still means one person", grantWith(requirements()), asked0, pending("0/1")},
		{"a requirement of nobody still means one person", grantWith(requirements(v1alpha1.GrantRequirement{Name: "x"})), asked0, pending("0/1")},
		{"a denial closes at once", grantWith(twoPeople, approved("ben"), decided(v1alpha1.VerdictDeny, "carla"), approved("dora")), answered,
			result{v1alpha1.GrantDenied, v1alpha1.ReasonApproverDenied, "1/2", -1}},
		{"a denial after the last approval is void", grantWith(approved("ben"), decided(v1alpha1.VerdictDeny, "carla")), answered, usable("1/1")},

		{"an approval for another grant is void", grantWith(approved("ben", func(d *v1alpha1.GrantDecision) { d.GrantUID = "another" })), answered, pending("0/1")},
		{"an approval without the grant's uid is void", grantWith(approved("ben", func(d *v1alpha1.GrantDecision) { d.GrantUID = "" })), answered, pending("0/1")},
		{"an approval of a grant without uid is void", grantWith(func(g *v1alpha1.PermissionGrant) { g.UID = "" },
			approved("ben", func(d *v1alpha1.GrantDecision) { d.GrantUID = "" })), answered, pending("0/1")},
		{"a denial for another grant is void", grantWith(decided(v1alpha1.VerdictDeny, "ben", func(d *v1alpha1.GrantDecision) { d.GrantUID = "another" })), answered, pending("0/1")},
		{"an approval of another digest is void", grantWith(approved("ben", func(d *v1alpha1.GrantDecision) { d.ShownDigest = otherDigest })), answered, pending("0/1")},
		{"an approval without a name is void", grantWith(approved("")), answered, pending("0/1")},
		{"an approval without a time is void", grantWith(approved("ben", func(d *v1alpha1.GrantDecision) { d.DecidedTime = nil })), answered, pending("0/1")},
		{"the requester's approval is void", grantWith(approved(agent)), answered, pending("0/1")},
		{"an unknown verdict approves nothing", grantWith(decided("Maybe", "ben")), answered, pending("0/1")},

		{"a question expires unanswered", grantWith(twoPeople, approved("ben")), decideBy,
			result{v1alpha1.GrantExpired, v1alpha1.ReasonNotDecidedInTime, "1/2", -1}},
		{"an approval after the end is void", grantWith(approved("ben", at(decideBy))), decideBy,
			result{v1alpha1.GrantExpired, v1alpha1.ReasonNotDecidedInTime, "0/1", -1}},
		{"an approval outlives the end of the question", grantWith(approved("ben", at(decideBy.Add(-time.Second)))), decideBy.Add(time.Hour), usable("1/1")},
		{"an approval that is not used in time expires", grantWith(approved("ben")), usedBy,
			result{v1alpha1.GrantExpired, v1alpha1.ReasonNotUsedInTime, "1/1", 0}},
		{"an expired grant stays expired when a clock steps back", grantWith(approved("ben"), stored(v1alpha1.GrantExpired, v1alpha1.ReasonNotUsedInTime)), answered,
			result{v1alpha1.GrantExpired, v1alpha1.ReasonNotUsedInTime, "1/1", 0}},

		{"a reserved use leaves none and stays approved", grantWith(approved("ben"), used(v1alpha1.UseReserved)), answered.Add(time.Hour),
			result{v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet, "1/1", 0}},
		{"expiry does not overwrite a reserved use", grantWith(approved("ben"), used(v1alpha1.UseReserved)), usedBy,
			result{v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet, "1/1", 0}},
		{"a consumed use exhausts", grantWith(approved("ben"), used(v1alpha1.UseConsumed)), usedBy,
			result{v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen, "1/1", 0}},
		{"an unknown use exhausts", grantWith(approved("ben"), used(v1alpha1.UseUnknown)), answered.Add(time.Hour),
			result{v1alpha1.GrantExhausted, v1alpha1.ReasonEffectUnknown, "1/1", 0}},
		{"a released use is given back", grantWith(approved("ben"), used(v1alpha1.UseReleased)), answered.Add(time.Hour), usable("1/1")},
		{"an outcome that nobody knows is not given back", grantWith(approved("ben"), used("Lost")), answered.Add(time.Hour),
			result{v1alpha1.GrantExhausted, v1alpha1.ReasonEffectUnknown, "1/1", 0}},

		{"a question is revoked", grantWith(revoked), answered,
			result{v1alpha1.GrantRevoked, v1alpha1.ReasonApprovalRevoked, "0/1", -1}},
		{"an approval is revoked", grantWith(approved("ben"), revoked), answered.Add(time.Hour),
			result{v1alpha1.GrantRevoked, v1alpha1.ReasonApprovalRevoked, "1/1", 0}},
		{"a superseded grant stays so, whatever is approved", grantWith(approved("ben"), stored(v1alpha1.GrantSuperseded, v1alpha1.ReasonEpochRaised)), answered,
			result{v1alpha1.GrantSuperseded, v1alpha1.ReasonEpochRaised, "1/1", 0}},
		{"a stale grant stays so", grantWith(approved("ben"), stored(v1alpha1.GrantStale, v1alpha1.ReasonPolicyChanged)), answered,
			result{v1alpha1.GrantStale, v1alpha1.ReasonPolicyChanged, "1/1", 0}},
		{"a stored approval approves nothing", grantWith(stored(v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet)), answered, pending("0/1")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status := Compute(tt.grant, tt.now)
			got := result{status.State, status.Reason, status.Approvals, -1}
			if status.UsesLeft != nil {
				got.UsesLeft = *status.UsesLeft
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Compute (-want +got):\n%s", diff)
			}
			if view := ToEngine(tt.grant, tt.now); string(view.State) != string(status.State) {
				t.Errorf("the engine sees %s, people see %s", view.State, status.State)
			}
		})
	}
}

func TestAPendingGrantShowsWhatAnApproverNeeds(t *testing.T) {
	got := Compute(grantWith(requirements(v1alpha1.GrantRequirement{Name: "data-loss", Required: 2})), asked0)
	waits := metav1.Condition{
		Status: metav1.ConditionFalse, Reason: "AwaitingApproval", Message: "Needs 2 approvals, has 0.",
		ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(asked0),
	}
	decidedCondition, approvedCondition := waits, waits
	decidedCondition.Type, approvedCondition.Type = "Decided", "Approved"
	want := v1alpha1.PermissionGrantStatus{
		ObservedGeneration: 1, State: v1alpha1.GrantPending, Reason: v1alpha1.ReasonAwaitingApproval,
		Target: "delete pvc/data-postgres-0", Approvals: "0/2",
		ApproveCommand: `kubectl -n checkout patch permissiongrant pg-7l3yy3mzxzd4pzlg --type=json -p ` +
			`'[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","shownDigest":"` + digest + `"}}]'`,
		ExpirationTime: &metav1.Time{Time: decideBy}, Expires: "12-01 10:05Z",
		Conditions: []metav1.Condition{decidedCondition, approvedCondition},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Compute (-want +got):\n%s", diff)
	}
}

func TestAnApprovedGrantIsBoundToThePoliciesOfTheLastApproval(t *testing.T) {
	g := grantWith(requirements(v1alpha1.GrantRequirement{Name: "data-loss", Required: 2}),
		approved("ben", func(d *v1alpha1.GrantDecision) { d.PolicyIdentity = policiesThen }),
		approved("carla", at(answered.Add(time.Minute))))
	g.Status.BoundPolicies = []v1alpha1.PolicyReference{{Kind: "ClusterAgentPolicy", Name: "default", UID: "u", Generation: 17}}
	got := Compute(g, answered.Add(2*time.Minute))
	left := int32(1)
	want := v1alpha1.PermissionGrantStatus{
		ObservedGeneration: 3, State: v1alpha1.GrantApproved, Reason: v1alpha1.ReasonRequirementsMet,
		Target: "delete pvc/data-postgres-0", Approvals: "2/2", BoundPolicyIdentity: policiesNow, BoundPolicies: g.Status.BoundPolicies,
		ExpirationTime: &metav1.Time{Time: usedBy.Add(time.Minute)}, Expires: "11-30 22:32Z", UsesLeft: &left,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(v1alpha1.PermissionGrantStatus{}, "Conditions")); diff != "" {
		t.Errorf("Compute (-want +got):\n%s", diff)
	}
	if got := ToEngine(g, answered).PolicyIdentity; got != policiesNow {
		t.Errorf("policy identity for the engine = %s, want %s", got, policiesNow)
	}
}

func TestConditionsSayHowAGrantEnded(t *testing.T) {
	tests := []struct {
		name  string
		grant *v1alpha1.PermissionGrant
		now   time.Time
		want  []string
	}{
		{"approved", grantWith(approved("ben"), approved("void")), answered, []string{
			"Decided True RequirementsMet: Approved by ben.",
			"Approved True RequirementsMet: Uses left until 2026-11-30T22:31:55Z: 1.",
		}},
		{"denied", grantWith(decided(v1alpha1.VerdictDeny, "ben")), answered, []string{
			"Decided True ApproverDenied: Denied by ben.",
			"Approved False ApproverDenied: Denied by ben.",
		}},
		{"not decided in time", grantWith(), decideBy, []string{
			"Decided True NotDecidedInTime: Had 0 of 1 approvals at 2026-12-01T10:05:31Z.",
			"Approved False NotDecidedInTime: Had 0 of 1 approvals at 2026-12-01T10:05:31Z.",
		}},
		{"not used in time", grantWith(approved("ben")), usedBy, []string{
			"Decided True RequirementsMet: Approved by ben.",
			"Approved False NotUsedInTime: Was not used until 2026-11-30T22:31:55Z.",
		}},
		{"revoked while pending", grantWith(revoked), answered, []string{
			"Decided True ApprovalRevoked: Revoked by ben@acme.example.",
			"Approved False ApprovalRevoked: Revoked by ben@acme.example.",
		}},
		{"superseded while pending", grantWith(stored(v1alpha1.GrantSuperseded, v1alpha1.ReasonNewerQuestion)), answered, []string{
			"Decided True NewerQuestion: The session asked anew about the same object.",
			"Approved False NewerQuestion: The session asked anew about the same object.",
		}},
		{"stale", grantWith(approved("ben"), stored(v1alpha1.GrantStale, v1alpha1.ReasonPolicyChanged)), answered, []string{
			"Decided True RequirementsMet: Approved by ben.",
			"Approved False PolicyChanged: A policy behind the approval has changed.",
		}},
		{"in use", grantWith(approved("ben"), used(v1alpha1.UseReserved)), answered, []string{
			"Decided True RequirementsMet: Approved by ben.",
			"Approved True RequirementsMet: The use has begun; its effect is not known yet.",
			"Settled False UseReserved: 0 of 1 uses consumed, 0 unknown, 1 not settled yet.",
		}},
		{"revoked in use", grantWith(approved("ben"), revoked, used(v1alpha1.UseReserved)), answered, []string{
			"Decided True RequirementsMet: Approved by ben.",
			"Approved False ApprovalRevoked: Revoked by ben@acme.example.",
			"Settled False UseReserved: 0 of 1 uses consumed, 0 unknown, 1 not settled yet.",
		}},
		{"consumed", grantWith(approved("ben"), used(v1alpha1.UseConsumed)), usedBy, []string{
			"Decided True RequirementsMet: Approved by ben.",
			"Approved True RequirementsMet: Used at 2026-11-30T19:31:56Z.",
			"Settled True EffectSeen: 1 of 1 uses consumed, 0 unknown, 0 not settled yet.",
		}},
		{"released", grantWith(approved("ben"), used(v1alpha1.UseReleased)), answered, []string{
			"Decided True RequirementsMet: Approved by ben.",
			"Approved True RequirementsMet: Uses left until 2026-11-30T22:31:55Z: 1.",
			"Settled True EffectAbsent: 0 of 1 uses consumed, 0 unknown, 0 not settled yet.",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range Compute(tt.grant, tt.now).Conditions {
				got = append(got, c.Type+" "+string(c.Status)+" "+c.Reason+": "+c.Message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestComputingAgainChangesNothing(t *testing.T) {
	g := grantWith(approved("ben"), used(v1alpha1.UseReserved))
	first := Compute(g, answered)
	g.Status = first
	if diff := cmp.Diff(first, Compute(g, answered.Add(time.Hour))); diff != "" {
		t.Errorf("computing again, an hour later (-want +got):\n%s", diff)
	}
}

func TestTheEngineSeesWhatBindsAGrant(t *testing.T) {
	tests := []struct {
		name  string
		grant *v1alpha1.PermissionGrant
		want  policy.Grant
	}{
		{"approved", grantWith(approved("ben")), policy.Grant{
			State: policy.GrantApproved, PolicyIdentity: policiesNow, Expiration: usedBy, UsesLeft: 1, Approvals: 1, Required: 1,
		}},
		{"denied", grantWith(decided(v1alpha1.VerdictDeny, "ben", func(d *v1alpha1.GrantDecision) { d.Reason = "that job belongs to cart" })), policy.Grant{
			State: policy.GrantDenied, Expiration: decideBy, Required: 1, Closed: answered, ClosedBy: "ben", ClosedWhy: "that job belongs to cart",
		}},
		{"used", grantWith(approved("ben"), used(v1alpha1.UseConsumed)), policy.Grant{
			State: policy.GrantExhausted, PolicyIdentity: policiesNow, Expiration: usedBy, Approvals: 1, Required: 1, Closed: answered.Add(time.Hour + time.Second),
		}},
		{"in use", grantWith(approved("ben"), used(v1alpha1.UseReserved)), policy.Grant{
			State: policy.GrantApproved, PolicyIdentity: policiesNow, Expiration: usedBy, Approvals: 1, Required: 1, Closed: answered.Add(time.Hour),
		}},
		{"revoked", grantWith(approved("ben"), revoked), policy.Grant{
			State: policy.GrantRevoked, PolicyIdentity: policiesNow, Expiration: usedBy, Approvals: 1, Required: 1, Closed: answered.Add(time.Minute),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Name, tt.want.Digest, tt.want.Stage = "pg-7l3yy3mzxzd4pzlg", digest, policy.StageExecute
			tt.want.Requester, tt.want.SessionUID, tt.want.Epoch = agent, "session", 3
			if diff := cmp.Diff(tt.want, ToEngine(tt.grant, answered.Add(2*time.Minute))); diff != "" {
				t.Errorf("ToEngine (-want +got):\n%s", diff)
			}
		})
	}
}

// However answers, revocations, uses, ends and clocks are mixed, no more uses are left than the grant has, none without
// enough approvals of different people, and none once the grant is closed.
//
// Proves G-2, G-4, G-5.
func TestNoHistoryGivesAUseThatWasNotApproved(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 5))
	pick := func(n int) int { return random.IntN(n) }
	seen := map[v1alpha1.GrantState]int{}
	for range 20000 {
		g := grantWith()
		need := 1 + pick(3)
		g.Spec.Request.Requirements[0].Required = int32(need)
		people := map[string]bool{}
		for range pick(6) {
			approver := []string{"ben", "carla", "dora", agent, ""}[pick(5)]
			when := answered.Add(time.Duration(pick(24)) * time.Hour)
			uid := []types.UID{grantUID, grantUID, grantUID, "another"}[pick(4)]
			shown := []string{digest, digest, digest, otherDigest}[pick(4)]
			verdict := []v1alpha1.Verdict{v1alpha1.VerdictApprove, v1alpha1.VerdictApprove, v1alpha1.VerdictApprove, v1alpha1.VerdictDeny}[pick(4)]
			decided(verdict, approver, at(when), func(d *v1alpha1.GrantDecision) { d.GrantUID, d.ShownDigest = uid, shown })(g)
			if verdict == v1alpha1.VerdictApprove && approver != "" && approver != agent && uid == grantUID && shown == digest && when.Before(decideBy) {
				people[approver] = true
			}
		}
		if pick(6) == 0 {
			revoked(g)
		}
		spent := 0
		for range pick(3) {
			outcome := []v1alpha1.UseOutcome{v1alpha1.UseReserved, v1alpha1.UseConsumed, v1alpha1.UseReleased, v1alpha1.UseUnknown}[pick(4)]
			used(outcome)(g)
			if outcome != v1alpha1.UseReleased {
				spent++
			}
		}
		if pick(6) == 0 {
			stored([]v1alpha1.GrantState{v1alpha1.GrantSuperseded, v1alpha1.GrantStale, v1alpha1.GrantApproved}[pick(3)], v1alpha1.ReasonEpochRaised)(g)
		}
		now := asked0.Add(time.Duration(pick(40)) * time.Hour)
		view, status := ToEngine(g, now), Compute(g, now)
		seen[status.State]++
		if view.UsesLeft == 0 {
			continue
		}
		switch {
		case view.UsesLeft > 1 || spent > 0:
			t.Fatalf("%d uses left after %d of 1: %+v", view.UsesLeft, spent, g)
		case len(people) < need:
			t.Fatalf("a use is left with %d of %d people: %+v", len(people), need, g.Spec.Decisions)
		case view.State != policy.GrantApproved || g.Spec.Revocation != nil || !now.Before(view.Expiration):
			t.Fatalf("a use is left in state %s: %+v", view.State, g)
		case status.UsesLeft == nil || int(*status.UsesLeft) != view.UsesLeft:
			t.Fatalf("people and engine see different uses left: %+v", status)
		}
	}
	for _, state := range []v1alpha1.GrantState{v1alpha1.GrantPending, v1alpha1.GrantApproved, v1alpha1.GrantDenied, v1alpha1.GrantExpired,
		v1alpha1.GrantRevoked, v1alpha1.GrantSuperseded, v1alpha1.GrantStale, v1alpha1.GrantExhausted} {
		if seen[state] == 0 {
			t.Errorf("no history ended as %s: the property says nothing about it", state)
		}
	}
}

func TestTheNameComesFromTheDigest(t *testing.T) {
	want := []string{"pg-7l3yy3mzxzd4pzlg", "pg-7l3yy3mzxzd4pzlg-2"}
	got := []string{Name(digest, 1), Name(digest, 2)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Name (-want +got):\n%s", diff)
	}
	if Name(otherDigest, 1) == Name(digest, 1) {
		t.Error("two digests have one name")
	}
	for _, malformed := range []string{"", "v1:", "v1:" + strings.Repeat("f", 18), "v1:" + strings.Repeat("x", 64)} {
		if got := Name(malformed, 1); got != "pg-" {
			t.Errorf("Name(%q) = %q, want what the API server refuses", malformed, got)
		}
	}
}
