package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves B-2, C-6: reason, rule, grant, next step and decision stand in the message and in the causes of every refusal.
func TestARefusalNamesReasonRuleGrantAndNextStepTwice(t *testing.T) {
	op := policy.Operation{Verb: policy.VerbUpdate, Target: policy.Target{Group: "apps", Resource: "deployments", Namespace: "checkout", Name: "web"}}
	details := []policy.Detail{{Code: "Destructive", Rule: "baseline/delete-data", Fact: "Destructive", Class: policy.ClassAsk}}
	refused := func(reason policy.Reason, change func(*policy.Decision)) policy.Decision {
		d := policy.Refuse(policy.ClassAsk, reason, "")
		change(&d)
		return d
	}
	until := time.Date(2026, 12, 1, 10, 5, 31, 0, time.UTC)
	asked := func(waiting bool) func(*policy.Decision) {
		return func(d *policy.Decision) {
			d.Verdict, d.Details = policy.VerdictPending, details
			d.Grant = &policy.GrantRef{Namespace: "checkout", Name: "pg-1", Until: until, Required: 1, Waiting: waiting}
		}
	}
	const command = `go on with other work; when "kubectl -n checkout get permissiongrant pg-1" shows Approved, run this command again unchanged`
	tests := map[string]struct {
		decision policy.Decision
		says     string // the end of the message
		want     map[string]string
	}{
		"a question": {
			refused(policy.ReasonPermissionPending, asked(false)), ". [d-1; PermissionPending]",
			map[string]string{"Class": "ASK", "Verdict": "Pending", "Reason": "PermissionPending", "Rule": "baseline/delete-data", "Grant": "pg-1", "Next": command},
		},
		"a question that waits": {
			refused(policy.ReasonPermissionPending, asked(true)), ". [d-1; PermissionPending; rule baseline/delete-data]",
			map[string]string{"Class": "ASK", "Verdict": "Pending", "Reason": "PermissionPending", "Rule": "baseline/delete-data", "Grant": "pg-1", "Next": command},
		},
		"a rule": {
			refused(policy.ReasonForbidden, func(d *policy.Decision) {
				d.Class, d.Recovery = policy.ClassForbidden, "Open a request at go/platform."
				d.Details = []policy.Detail{{Code: policy.CodeRule, Rule: "default/forbid-nodes", Why: "Nodes belong to the platform team."}}
			}),
			". [d-1]",
			map[string]string{"Class": "FORBIDDEN", "Verdict": "Deny", "Reason": "Forbidden", "Rule": "default/forbid-nodes", "Next": "Open a request at go/platform"},
		},
		"a use that is under way": {
			refused(policy.ReasonGrantInUse, func(d *policy.Decision) { d.Grant = &policy.GrantRef{Namespace: "checkout", Name: "pg-1"} }),
			". [d-1; GrantInUse; permissiongrant/pg-1]",
			map[string]string{"Class": "ASK", "Verdict": "Deny", "Reason": "GrantInUse", "Grant": "pg-1", "Next": "look whether it took effect; if it did not, run this command again in a minute"},
		},
		"no session": {
			refused(policy.ReasonNoSession, func(*policy.Decision) {}), ". [d-1; NoSession]",
			map[string]string{"Class": "ASK", "Verdict": "Deny", "Reason": "NoSession", "Next": "a person adds a session template or an exemption for this ServiceAccount"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status := respond(&tt.decision, &op, "d-1").Result
			if !strings.HasSuffix(status.Message, tt.says) {
				t.Errorf("the message does not end with %q: %s", tt.says, status.Message)
			}
			tt.want["Decision"] = "d-1"
			got := map[string]string{}
			for _, cause := range status.Details.Causes {
				got[strings.TrimPrefix(string(cause.Type), "stepbeyond.dev/")] = cause.Message
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			for cause, text := range got {
				if cause != "Class" && cause != "Verdict" && !strings.Contains(status.Message, text) {
					t.Errorf("the message does not say the %s: %s", cause, status.Message)
				}
			}
		})
	}
}

func TestALongRefusalKeepsItsReferences(t *testing.T) {
	op := policy.Operation{Verb: policy.VerbUpdate, Target: policy.Target{Resource: "widgets", Namespace: "checkout", Name: strings.Repeat("n", 250)}}
	d := policy.Refuse(policy.ClassForbidden, policy.ReasonOutsideAuthority, strings.Repeat("s", 400))
	d.Details = []policy.Detail{{Code: policy.CodeRule, Rule: "default/" + strings.Repeat("r", 60), Why: strings.Repeat("w", 400)}}
	message := respond(&d, &op, "d-1").Result.Message
	if len(message) > 480 {
		t.Errorf("%d bytes, want at most 480", len(message))
	}
	for _, part := range []string{"OutsideAuthority", d.Details[0].Rule, "[d-1"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message does not say %q: %s", part, message)
		}
	}
}
