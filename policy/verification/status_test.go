package verification_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy/verification"
)

func passed(scope ...string) verification.Check {
	return verification.Check{Method: verification.MethodDirect, Executed: "kubectl rollout status", Evidence: []string{"log:1"}, Result: verification.ResultPassed, Scope: scope}
}

func with(c verification.Check, change func(*verification.Check)) verification.Check {
	change(&c)
	return c
}

func failed(scope ...string) verification.Check {
	return with(passed(scope...), func(c *verification.Check) { c.Result = verification.ResultFailed })
}

func indirect(scope ...string) verification.Check {
	return with(passed(scope...), func(c *verification.Check) { c.Method = verification.MethodIndirect })
}

var claim = verification.Claim{ID: "c1", Text: "The rollout is done.", Scope: []string{"web", "api"}}

// Proves V-1 and V-2: the status follows from claim, method, executed check, evidence, result, scope, unchecked elements and
// environment blockers.
// Proves V-3: a pass never covers what was not checked.
func TestTheStatusIsComputedFromTheParts(t *testing.T) {
	type omissions = []verification.Omission
	tests := []struct {
		name   string
		record verification.Record
		want   verification.Assessment
	}{
		{"one direct check that passed on everything verifies",
			verification.Record{Checks: []verification.Check{passed("web", "api")}},
			verification.Assessment{Status: "verified", VerifiedScope: []string{"web", "api"}}},
		{"several checks verify together",
			verification.Record{Checks: []verification.Check{passed("api"), passed("web", "db")}},
			verification.Assessment{Status: "verified", VerifiedScope: []string{"web", "api"}}},
		{"a check of a part verifies that part",
			verification.Record{Checks: []verification.Check{passed("web")}},
			verification.Assessment{Status: "partially_verified", VerifiedScope: []string{"web"}, Unverified: omissions{{"api", "NoCheck"}}}},
		{"a part that the environment kept from being checked is blocked",
			verification.Record{Checks: []verification.Check{passed("web")}, EnvironmentBlockers: []string{"no cluster"}},
			verification.Assessment{Status: "partially_verified", VerifiedScope: []string{"web"}, Unverified: omissions{{"api", "Blocked"}}, EnvironmentBlockers: []string{"no cluster"}}},
		{"a pass does not cover what the record names as unchecked",
			verification.Record{Checks: []verification.Check{passed("web", "api")}, UncheckedElements: []string{"api"}},
			verification.Assessment{Status: "partially_verified", VerifiedScope: []string{"web"}, Unverified: omissions{{"api", "Unchecked"}}}},
		{"an unchecked element beside the claim is admitted",
			verification.Record{Checks: []verification.Check{passed("web", "api")}, UncheckedElements: []string{"db"}},
			verification.Assessment{Status: "partially_verified", VerifiedScope: []string{"web", "api"}, Unverified: omissions{{"db", "Unchecked"}}}},
		{"a blocker leaves a doubt even when every element passed",
			verification.Record{Checks: []verification.Check{passed("web", "api")}, EnvironmentBlockers: []string{"no load generator"}},
			verification.Assessment{Status: "partially_verified", VerifiedScope: []string{"web", "api"}, EnvironmentBlockers: []string{"no load generator"}}},
		{"an indirect check is useful and verifies nothing",
			verification.Record{Checks: []verification.Check{indirect("web", "api")}},
			verification.Assessment{Status: "partially_verified", Unverified: omissions{{"web", "CheckedIndirectly"}, {"api", "CheckedIndirectly"}}}},
		{"an indirect check takes nothing from a direct one",
			verification.Record{Checks: []verification.Check{indirect("web", "api"), passed("web", "api")}},
			verification.Assessment{Status: "verified", VerifiedScope: []string{"web", "api"}}},
		{"a failed check supports nothing",
			verification.Record{Checks: []verification.Check{failed("web", "api")}},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "CheckFailed"}, {"api", "CheckFailed"}}}},
		{"a failed check counts more than one that passed, in either order",
			verification.Record{Checks: []verification.Check{passed("web", "api"), failed("api"), passed("api")}},
			verification.Assessment{Status: "partially_verified", VerifiedScope: []string{"web"}, Unverified: omissions{{"api", "CheckFailed"}}}},
		{"a failed check without a scope counts against the whole claim",
			verification.Record{Checks: []verification.Check{passed("web", "api"), failed()}},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "CheckFailed"}, {"api", "CheckFailed"}}}},
		{"a failed check of something inside the claim's elements counts against the whole claim",
			verification.Record{Checks: []verification.Check{passed("web", "api"), failed("web/login")}},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "CheckFailed"}, {"api", "CheckFailed"}}}},
		{"a check that gave no result supports nothing",
			verification.Record{Checks: []verification.Check{with(passed("web", "api"), func(c *verification.Check) { c.Result = verification.ResultNotRun })}},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "NoCheck"}, {"api", "NoCheck"}}}},
		{"a pass without evidence supports nothing",
			verification.Record{Checks: []verification.Check{with(passed("web", "api"), func(c *verification.Check) { c.Evidence = nil })}},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "NoCheck"}, {"api", "NoCheck"}}}},
		{"a pass that nothing was executed for supports nothing",
			verification.Record{Checks: []verification.Check{with(passed("web", "api"), func(c *verification.Check) { c.Executed = "" })}},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "NoCheck"}, {"api", "NoCheck"}}}},
		{"a pass on something else supports nothing",
			verification.Record{Checks: []verification.Check{passed("db"), passed()}},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "NoCheck"}, {"api", "NoCheck"}}}},
		{"no check at all supports nothing",
			verification.Record{},
			verification.Assessment{Status: "unverified", Unverified: omissions{{"web", "NoCheck"}, {"api", "NoCheck"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.record.ClaimID = "c1"
			if diff := cmp.Diff(tt.want, verification.Assess(&claim, &tt.record)); diff != "" {
				t.Errorf("assessment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnElementThatIsStatedTwiceCountsOnce(t *testing.T) {
	twice := verification.Claim{ID: "c1", Text: "t", Scope: []string{"web", "web"}}
	got := verification.Assess(&twice, &verification.Record{ClaimID: "c1", Checks: []verification.Check{passed("web")}})
	if diff := cmp.Diff(verification.Assessment{Status: "verified", VerifiedScope: []string{"web"}}, got); diff != "" {
		t.Errorf("assessment (-want +got):\n%s", diff)
	}
}

// Proves V-2: nothing that goes in can hold a status, so none can be accepted.
func TestNoInputHoldsAStatus(t *testing.T) {
	status := reflect.TypeFor[verification.Status]()
	for _, input := range []reflect.Type{reflect.TypeFor[verification.Claim](), reflect.TypeFor[verification.Record](), reflect.TypeFor[verification.Check]()} {
		for i := range input.NumField() {
			field := input.Field(i)
			if element := field.Type; element == status || (element.Kind() == reflect.Slice && element.Elem() == status) || field.Name == "VerifiedScope" {
				t.Errorf("%s.%s could state what is to be computed", input, field.Name)
			}
		}
	}
}

var elements = []string{"web", "api", "db", "web/login"}

func drawCheck(t *rapid.T) verification.Check {
	return verification.Check{
		Method:   rapid.SampledFrom([]verification.Method{verification.MethodDirect, verification.MethodDirect, verification.MethodDirect, verification.MethodIndirect}).Draw(t, "method"),
		Executed: "make test", Evidence: rapid.SliceOfN(rapid.Just("log:1"), 0, 2).Draw(t, "evidence"),
		Result: rapid.SampledFrom([]verification.Result{verification.ResultPassed, verification.ResultPassed, verification.ResultPassed, verification.ResultFailed, verification.ResultNotRun}).Draw(t, "result"),
		Scope:  rapid.SliceOfNDistinct(rapid.SampledFrom(elements), 0, 4, rapid.ID).Draw(t, "scope"),
	}
}

func drawRecord(t *rapid.T, id string) verification.Record {
	r := verification.Record{ClaimID: id}
	if rapid.Bool().Draw(t, "has passed") {
		r.Checks = append(r.Checks, passed(rapid.SliceOfNDistinct(rapid.SampledFrom(elements[:3]), 1, 3, rapid.ID).Draw(t, "passed")...))
	}
	if rapid.IntRange(0, 3).Draw(t, "has passed on all") == 0 {
		r.Checks = append(r.Checks, passed(elements[:3]...))
	}
	if rapid.IntRange(0, 3).Draw(t, "has passed indirectly") == 0 {
		r.Checks = append(r.Checks, indirect(elements[:3]...))
	}
	if rapid.Bool().Draw(t, "nothing else") {
		return r
	}
	for range rapid.IntRange(0, 4).Draw(t, "checks") {
		r.Checks = append(r.Checks, drawCheck(t))
	}
	if rapid.IntRange(0, 3).Draw(t, "names unchecked elements") == 0 {
		r.UncheckedElements = rapid.SliceOfNDistinct(rapid.SampledFrom(elements), 1, 2, rapid.ID).Draw(t, "unchecked")
	}
	if rapid.Bool().Draw(t, "is blocked") {
		r.EnvironmentBlockers = []string{"no cluster"}
	}
	return r
}

func drawClaim(t *rapid.T, id string) verification.Claim {
	return verification.Claim{ID: id, Text: "It works.", Scope: rapid.SliceOfNDistinct(rapid.SampledFrom(elements[:3]), 1, 3, rapid.ID).Draw(t, "claimed")}
}

var rank = map[verification.Status]int{verification.StatusUnverified: 0, verification.StatusPartiallyVerified: 1, verification.StatusVerified: 2}

// Proves V-2 and V-3: an element is verified only by a direct check with evidence that passed on it, and never when a check
// failed on it or the record names it as unchecked; a failed check, an unchecked element or a blocker more never raises a
// status, and the order of checks does not matter.
func TestOnlyWhatPassedIsVerified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claim, record := drawClaim(t, "c1"), drawRecord(t, "c1")
		got := verification.Assess(&claim, &record)
		for _, element := range got.VerifiedScope {
			shown := false
			for _, c := range record.Checks {
				covers := slices.Contains(c.Scope, element)
				shown = shown || (covers && c.Result == verification.ResultPassed && c.Method == verification.MethodDirect && len(c.Evidence) > 0)
				if covers && c.Result == verification.ResultFailed {
					t.Fatalf("%s is verified against a failed check", element)
				}
			}
			if !shown || slices.Contains(record.UncheckedElements, element) {
				t.Fatalf("%s is verified by nothing in %+v", element, record)
			}
		}
		if got.Status == verification.StatusVerified && (len(got.VerifiedScope) != len(claim.Scope) || len(got.Unverified) > 0) {
			t.Fatalf("verified covers %v of %v", got.VerifiedScope, claim.Scope)
		}
		worse := record
		switch rapid.IntRange(0, 2).Draw(t, "more doubt") {
		case 0:
			check := drawCheck(t)
			check.Result = verification.ResultFailed
			worse.Checks = append(slices.Clone(record.Checks), check)
		case 1:
			worse.UncheckedElements = append(slices.Clone(record.UncheckedElements), rapid.SampledFrom(elements).Draw(t, "element"))
		default:
			worse.EnvironmentBlockers = append(slices.Clone(record.EnvironmentBlockers), "no network")
		}
		if after := verification.Assess(&claim, &worse); rank[after.Status] > rank[got.Status] {
			t.Fatalf("more doubt raised %s to %s: %+v", got.Status, after.Status, worse)
		}
		shuffled := record
		shuffled.Checks = rapid.Permutation(record.Checks).Draw(t, "order")
		if diff := cmp.Diff(got, verification.Assess(&claim, &shuffled)); diff != "" {
			t.Fatalf("another order of checks has another status:\n%s", diff)
		}
	})
}

func TestRecordsReachEveryStatus(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		claim, record := drawClaim(t, "c1"), drawRecord(t, "c1")
		got := verification.Assess(&claim, &record)
		labels := []string{"status " + string(got.Status)}
		for _, omission := range got.Unverified {
			labels = append(labels, "omission "+string(omission.Reason))
		}
		return labels
	})
	shares.Check(t, labels, 2000, "status verified", "status partially_verified", "status unverified",
		"omission NoCheck", "omission CheckFailed", "omission Unchecked", "omission Blocked", "omission CheckedIndirectly")
}
