package onboarding

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

var (
	first  = metav1.NewTime(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	second = metav1.NewTime(first.Add(time.Minute))
	agent  = Account{Namespace: "trial", Name: "agent"}
)

func everywhere(string) bool { return true }

// asked is the decision about a deletion that a person would have been asked about.
func asked(name string) (*policy.Operation, *policy.Decision) {
	return &policy.Operation{Verb: policy.VerbDelete, Target: policy.Target{Group: "apps", Resource: "deployments", Namespace: "trial", Name: name}},
		&policy.Decision{
			Class: policy.ClassAsk, Verdict: policy.VerdictPending, Reason: policy.ReasonPermissionPending,
			Details: []policy.Detail{{Code: "Destructive", Rule: "baseline/deletions"}},
		}
}

func TestWhatWouldHaveComeOfADecision(t *testing.T) {
	details := []policy.Detail{{Code: policy.CodeRule, Rule: "default/forbid-services"}}
	for _, tt := range []struct {
		name     string
		decision policy.Decision
		want     Review
	}{
		{"an AUTO is allowed", policy.Decision{Class: policy.ClassAuto, Verdict: policy.VerdictAllow, Reason: policy.ReasonAllowed},
			Review{Class: policy.ClassAuto, Outcome: WouldAllow}},
		{"a dry run of an ASK is allowed", policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictAllow, Reason: policy.ReasonDryRun, Details: details},
			Review{Class: policy.ClassAsk, Outcome: WouldAllow}},
		{"a pending ASK is asked", policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictPending, Reason: policy.ReasonPermissionPending, Details: details},
			Review{Class: policy.ClassAsk, Outcome: WouldAsk, Finding: Finding{Operation: "update deployments.apps/scale", Reason: "PermissionPending", Because: "Rule", Rule: "default/forbid-services"}}},
		{"an ASK of a session that is being made is asked", policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictDeny, Reason: policy.ReasonSessionPending, Details: details},
			Review{Class: policy.ClassAsk, Outcome: WouldAsk, Finding: Finding{Operation: "update deployments.apps/scale", Reason: "SessionPending", Because: "Rule", Rule: "default/forbid-services"}}},
		{"a FORBIDDEN is refused", policy.Decision{Class: policy.ClassForbidden, Verdict: policy.VerdictDeny, Reason: policy.ReasonForbidden, Details: details},
			Review{Class: policy.ClassForbidden, Outcome: WouldRefuse, Finding: Finding{Operation: "update deployments.apps/scale", Reason: "Forbidden", Because: "Rule", Rule: "default/forbid-services"}}},
		{"without a session everything is refused, whatever the class", policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictDeny, Reason: policy.ReasonNoSession, Details: details},
			Review{Class: policy.ClassAsk, Outcome: WouldRefuse, Finding: Finding{Operation: "update deployments.apps/scale", Reason: "NoSession"}}},
		{"a held change is refused", policy.Decision{Class: policy.ClassAuto, Verdict: policy.VerdictHeld, Reason: policy.ReasonSuspended},
			Review{Class: policy.ClassAuto, Outcome: WouldRefuse, Finding: Finding{Operation: "update deployments.apps/scale", Reason: "Suspended"}}},
		{"a failure says nothing about the agent", policy.Refuse(0, policy.ReasonUndecided, ""),
			Review{Class: policy.ClassAsk, Outcome: Undecided, Finding: Finding{Operation: "update deployments.apps/scale", Reason: "Undecided"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			op := policy.Operation{Verb: policy.VerbUpdate, Target: policy.Target{Group: "apps", Resource: "deployments", Subresource: "scale", Name: "web"}}
			tt.want.Account = agent
			if diff := cmp.Diff(tt.want, ReviewOf(agent, &op, &tt.decision)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Thousands of objects of one kind are one finding, and thousands of ServiceAccounts and kinds end in sums: an agent that
// wants to fill etcd cannot.
func TestAReportIsBoundedWhateverAgentsDo(t *testing.T) {
	counter := NewCounter(NewMetric())
	const targets, accounts, kinds = 5000, maxAccounts + 100, maxFindings + 6
	for i := range targets {
		op, decision := asked(fmt.Sprintf("web-%d", i))
		counter.Add(ReviewOf(agent, op, decision), decision.Reason)
	}
	report := merged(nil, counter.Take(), everywhere, first)
	want := &v1alpha1.OnboardingReport{
		CountedSinceTime: first, LastCountedTime: first,
		Total: v1alpha1.OnboardingCounts{WouldAsk: targets, Ask: targets},
		ServiceAccounts: []v1alpha1.OnboardingServiceAccount{{
			Namespace: "trial", Name: "agent", Counts: v1alpha1.OnboardingCounts{WouldAsk: targets, Ask: targets},
			Findings: []v1alpha1.OnboardingFinding{{
				Operation: "delete deployments.apps", Reason: "PermissionPending", Because: "Destructive", Rule: "baseline/deletions", Count: targets,
			}},
		}},
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for i := range accounts {
		for kind := range kinds {
			op, decision := asked("web")
			op.Target.Resource = fmt.Sprintf("kind%d", kind)
			counter.Add(ReviewOf(Account{Namespace: "trial", Name: fmt.Sprintf("agent-%d", i)}, op, decision), decision.Reason)
		}
	}
	counted := counter.Take()
	if len(counted) != maxAccounts+1 || len(counted[Account{Namespace: "trial", Name: "agent-0"}].findings) != maxFindings {
		t.Errorf("%d accounts and %d findings in memory", len(counted), len(counted[Account{Namespace: "trial", Name: "agent-0"}].findings))
	}
	report = merged(report, counted, everywhere, second)
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(text))
	if len(report.ServiceAccounts) != maxListed || len(report.ServiceAccounts[1].Findings) != maxListedFindings || len(text) > 1<<18 {
		t.Errorf("%d ServiceAccounts, %d findings, %d bytes", len(report.ServiceAccounts), len(report.ServiceAccounts[1].Findings), len(text))
	}
	if got := report.Total.WouldAsk; got != targets+accounts*kinds {
		t.Errorf("the total is %d, want %d", got, targets+accounts*kinds)
	}
	if report.ServiceAccounts[0].Name != "agent" || report.CountedSinceTime != first || report.LastCountedTime != second {
		t.Errorf("the most asked is %s, since %s, last %s", report.ServiceAccounts[0].Name, report.CountedSinceTime, report.LastCountedTime)
	}
}

func TestMergedReports(t *testing.T) {
	counter := NewCounter(NewMetric())
	op, decision := asked("web")
	other := Account{Namespace: "other", Name: "agent"}
	for _, account := range []Account{agent, other} {
		counter.Add(ReviewOf(account, op, decision), decision.Reason)
	}
	taken := counter.Take()
	old := merged(nil, taken, everywhere, first)

	t.Run("counts of two replicas add up", func(t *testing.T) {
		got := merged(old, taken, everywhere, second)
		if got.Total.WouldAsk != 4 || got.ServiceAccounts[0].Findings[0].Count != 2 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("what could not be written is counted once when it can", func(t *testing.T) {
		counter.Add(ReviewOf(agent, op, decision), decision.Reason)
		counter.Return(taken)
		if got := merged(nil, counter.Take(), everywhere, second); got.Total.WouldAsk != 3 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a namespace that is audited no more leaves the report", func(t *testing.T) {
		got := merged(old, nil, func(namespace string) bool { return namespace == "trial" }, second)
		if len(got.ServiceAccounts) != 1 || got.ServiceAccounts[0].Namespace != "trial" || got.Total.WouldAsk != 1 || got.LastCountedTime != first {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("nothing new changes nothing", func(t *testing.T) {
		if diff := cmp.Diff(old, merged(old, nil, everywhere, second)); diff != "" {
			t.Errorf("(-old +merged):\n%s", diff)
		}
	})
}
