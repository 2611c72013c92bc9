package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func policyProven(name string, d time.Duration, webhook, floor v1alpha1.EnforcementState) v1alpha1.ClusterAgentPolicy {
	at := ago(d)
	return v1alpha1.ClusterAgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1alpha1.ClusterAgentPolicyStatus{
			Governed:    &v1alpha1.GovernedCounts{Namespaces: 181, OnboardingNamespaces: 31, Users: 1},
			Enforcement: &v1alpha1.EnforcementStatus{Webhook: webhook, Floor: floor, FloorPolicies: 3, LastProvenTime: &at},
		},
	}
}

func session(name string, state v1alpha1.SessionState, guarantee v1alpha1.Guarantee) v1alpha1.AgentSession {
	return v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: name}, Status: v1alpha1.AgentSessionStatus{State: state, Guarantee: guarantee},
	}
}

// grant was asked some time ago and, with a reason, decided some time later.
func grant(name string, asked time.Duration, state v1alpha1.GrantState, reason v1alpha1.ConditionReason, later time.Duration) v1alpha1.PermissionGrant {
	g := v1alpha1.PermissionGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: name, CreationTimestamp: ago(asked)}}
	g.Status.State = state
	g.Spec.Request.DecideByTime = ago(asked - 16*time.Hour)
	g.Spec.Request.Operation.Summary = "delete configmaps checkout/web"
	if reason != "" {
		g.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.ConditionDecided), Status: metav1.ConditionTrue, Reason: string(reason), LastTransitionTime: ago(asked - later)}}
	}
	return g
}

func TestTheStatusOfACluster(t *testing.T) {
	confined := policyProven("default", 9*time.Second, v1alpha1.EnforcementInForce, v1alpha1.EnforcementInForce)
	confined.Status.Conditions = []metav1.Condition{
		{Type: string(v1alpha1.ConditionReady), Status: metav1.ConditionTrue},
		{Type: string(v1alpha1.ConditionIdentitiesConfined), Status: metav1.ConditionFalse, Reason: "RoleEscapes", Message: "ClusterRole edit, bound to checkout/agent-old in namespace checkout, allows impersonate serviceaccounts."},
	}
	confined.Status.Onboarding = &v1alpha1.OnboardingReport{CountedSinceTime: ago(24 * time.Hour), Total: v1alpha1.OnboardingCounts{WouldAllow: 90, WouldAsk: 7, WouldRefuse: 3}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "stepbeyond.dev", Resource: sessions}, "", errors.New("no"))
	full := &seen{
		policies: v1alpha1.ClusterAgentPolicyList{Items: []v1alpha1.ClusterAgentPolicy{confined}},
		sessions: v1alpha1.AgentSessionList{Items: []v1alpha1.AgentSession{
			session("a", v1alpha1.SessionActive, v1alpha1.GuaranteeRuntimeBacked), session("b", v1alpha1.SessionSuspended, v1alpha1.GuaranteeRuntimeBacked),
			session("c", v1alpha1.SessionActive, v1alpha1.GuaranteePromptOnly), session("d", v1alpha1.SessionEnded, v1alpha1.GuaranteePromptOnly),
			session("e", "", ""),
		}},
		grants: v1alpha1.PermissionGrantList{Items: []v1alpha1.PermissionGrant{
			grant("p1", 48*time.Minute, v1alpha1.GrantPending, "", 0), grant("p2", 950*time.Minute, "", "", 0),
			grant("a1", 3*time.Hour, v1alpha1.GrantExhausted, v1alpha1.ReasonRequirementsMet, 6*time.Minute),
			grant("a2", 3*time.Hour, v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet, 4*time.Minute),
			grant("d1", 2*time.Hour, v1alpha1.GrantDenied, v1alpha1.ReasonApproverDenied, time.Hour),
			grant("e1", 20*time.Hour, v1alpha1.GrantExpired, v1alpha1.ReasonNotDecidedInTime, 16*time.Hour),
			grant("s1", 20*time.Hour, v1alpha1.GrantSuperseded, v1alpha1.ReasonEpochRaised, time.Hour),
			grant("old", 50*time.Hour, v1alpha1.GrantDenied, v1alpha1.ReasonApproverDenied, time.Hour),
		}},
	}
	proven := func(d time.Duration, states ...v1alpha1.EnforcementState) *seen {
		return &seen{policies: v1alpha1.ClusterAgentPolicyList{Items: []v1alpha1.ClusterAgentPolicy{
			policyProven("a", time.Second, v1alpha1.EnforcementInForce, v1alpha1.EnforcementInForce), policyProven("b", d, states[0], states[1]),
		}}}
	}
	for _, tt := range []struct {
		name string
		seen *seen
		want string
	}{
		{"everything", full, `
enforcement   in force, proven 9s ago (webhook InForce, floor InForce, 3 floor policies proven)
governed      212 namespaces (31 onboarding), 1 user, 4 sessions: 2 runtime-backed, 1 prompt-only, 1 not computed yet
queue         2 pending, oldest 15h50m; 24 h: 2 approved, 1 denied, 1 expired, median answer 6m
sessions      1 suspended: checkout/b
onboarding    would have asked 7 and refused 3 of 100 requests since 2026-11-30 12:00Z
attention     ClusterAgentPolicy default: IdentitiesConfined is False, RoleEscapes: ClusterRole edit, bound to
              checkout/agent-old in namespace checkout, allows impersonate serviceaccounts. (kubectl stepbeyond policy
              lint -A)
              PermissionGrant checkout/p2: delete configmaps checkout/web expires unanswered in 10m (kubectl -n checkout
              describe permissiongrant p2)
`},
		{"a proof that is too old says nothing about now", proven(5*time.Minute, "InForce", "InForce"), `
enforcement   not known, proven 5m ago, which is too long ago: no manager may be running (webhook InForce, floor
              InForce, 3 floor policies proven)
governed      424 namespaces (62 onboarding), 2 users, 0 sessions
queue         nothing pending, and no grant is there
`},
		{"of two policies the worse counts", proven(time.Minute, "Repairing", "Lost"), `
enforcement   LOST, proven 1m ago (webhook Repairing, floor Lost, 3 floor policies proven)
governed      424 namespaces (62 onboarding), 2 users, 0 sessions
queue         nothing pending, and no grant is there
`},
		{"no policy", &seen{}, `
enforcement   none: no ClusterAgentPolicy exists, so nobody new is governed
governed      0 namespaces, 0 users, 0 sessions
queue         nothing pending, and no grant is there
`},
		{"a policy that no manager has seen", &seen{policies: v1alpha1.ClusterAgentPolicyList{Items: []v1alpha1.ClusterAgentPolicy{{}}}}, `
enforcement   not proven yet: no manager has written a status
governed      0 namespaces, 0 users, 0 sessions
queue         nothing pending, and no grant is there
`},
		{"what may not be read", &seen{unreadable: map[string]error{clusterPolicies: forbidden, sessions: forbidden, grants: forbidden}}, `
enforcement   not known: list clusteragentpolicies: you may not read it
governed      not known: list clusteragentpolicies: you may not read it; sessions not known: list agentsessions: you may
              not read it
queue         not known: list permissiongrants: you may not read it
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.seen.report("", now).text(terminal.Paint{})
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Thousands of policies, sessions and hostile texts give a page that a person can read.
func TestTheStatusIsBoundedAndSafeToShow(t *testing.T) {
	s := &seen{}
	for i := range 50 {
		p := policyProven(fmt.Sprintf("p%d", i), time.Second, v1alpha1.EnforcementInForce, v1alpha1.EnforcementInForce)
		p.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.ConditionReady), Status: metav1.ConditionFalse, Reason: "InvalidRule", Message: "\x1b[2K" + strings.Repeat("long ", 400)}}
		s.policies.Items = append(s.policies.Items, p)
		s.sessions.Items = append(s.sessions.Items, session(fmt.Sprintf("s%02d", i), v1alpha1.SessionSuspended, ""))
	}
	text := s.report("", now).text(terminal.Paint{})
	if strings.ContainsRune(text, '\x1b') || !strings.Contains(text, "and 45 more") || !strings.Contains(text, "and 42 more (-o json lists all)") {
		t.Errorf("got:\n%s", text)
	}
	if lines := strings.Count(text, "\n"); lines > 60 {
		t.Errorf("%d lines", lines)
	}
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 {
			t.Errorf("too wide: %q", line)
		}
	}
}
