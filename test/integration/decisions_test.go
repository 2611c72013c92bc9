package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Proves G-3, G-4, C-6.
func TestNobodyButTheManagerCreatesAGrant(t *testing.T) {
	const ns = "answers"
	h := at(t, ns)
	must(t, configMap(ns, "copied"))
	asked := h.ask(t, remove(configMap(ns, "copied")))
	forged := func(change func(*v1alpha1.PermissionGrant)) *v1alpha1.PermissionGrant {
		g := &v1alpha1.PermissionGrant{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pg-forged"}, Spec: *asked.Spec.DeepCopy()}
		change(g)
		return g
	}
	decided := func(g *v1alpha1.PermissionGrant) {
		g.Spec.Decisions = []v1alpha1.GrantDecision{{
			Approver: carlaName, Verdict: v1alpha1.VerdictApprove, ShownDigest: asked.Spec.Request.Digest, GrantUID: asked.UID,
			DecidedTime: &metav1.Time{Time: time.Now()}, Scope: v1alpha1.GrantScope{Type: v1alpha1.ScopeExact},
		}}
	}
	forbiddenRule := func(g *v1alpha1.PermissionGrant) {
		g.Spec.Request.Rules = []v1alpha1.GrantRule{{Name: "baseline/rbac-writes", Class: v1alpha1.ClassForbidden, Reason: "EscalatesAuthority"}}
	}
	tests := []struct {
		name   string
		who    *actor
		change func(*v1alpha1.PermissionGrant)
		says   string
	}{
		{"a person with RBAC to create", ben, func(*v1alpha1.PermissionGrant) {}, "spec.request: Forbidden: only Step Beyond asks questions"},
		{"an administrator", admin, func(*v1alpha1.PermissionGrant) {}, "spec.request: Forbidden: only Step Beyond asks questions"},
		{"with an answer in it", admin, decided, "spec.decisions: Invalid value"},
		{"for a FORBIDDEN operation", admin, forbiddenRule, "spec.request.rules[0].class: Invalid value"},
		{"an agent with cluster-admin", h.agent, func(*v1alpha1.PermissionGrant) {}, "stepbeyond-floor-self"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.who.Create(t.Context(), forged(tt.change))
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

// answerTest is one answer to a question of the agent. It is refused with a part of the message, or (says is empty) taken.
type answerTest struct {
	name string
	// before prepares the question; omitted: it is pending.
	before func(t *testing.T, h *home, g *v1alpha1.PermissionGrant)
	who    func() *actor
	patch  func(g *v1alpha1.PermissionGrant) client.Patch
	code   int32
	says   string
	want   v1alpha1.GrantState // afterwards
}

func approveWith(claims map[string]any) func(*v1alpha1.PermissionGrant) client.Patch {
	return func(g *v1alpha1.PermissionGrant) client.Patch { return answer(g, v1alpha1.VerdictApprove, claims) }
}

func deny(g *v1alpha1.PermissionGrant) client.Patch { return answer(g, v1alpha1.VerdictDeny, nil) }

func revoke(*v1alpha1.PermissionGrant) client.Patch {
	return patchOf(map[string]any{"op": "add", "path": "/spec/revocation", "value": map[string]any{"reason": "changed my mind"}})
}

func byCarla(verdict v1alpha1.Verdict) func(*testing.T, *home, *v1alpha1.PermissionGrant) {
	return func(t *testing.T, h *home, g *v1alpha1.PermissionGrant) {
		t.Helper()
		h.decide(t, carla, g, verdict, nil)
	}
}

// Proves G-3, G-4, K-1.
func TestAnAnswerIsTakenOnlyFromWhoMayGiveItAndOnlyAsItIs(t *testing.T) {
	const ns = "answers"
	h := at(t, ns)
	approve := approveWith(nil)
	person := func(a **actor) func() *actor { return func() *actor { return *a } }
	agent := func() *actor { return h.agent }
	cousin := func() *actor {
		a, err := accountActor(context.Background(), ns, "default", "")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	// A person who has every right but the one to approve as themselves.
	impersonator := func() *actor {
		cfg := plane.Admin()
		cfg.Impersonate.UserName = carlaName
		a, err := newActor("admin", cfg)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	replaced := func(path string, value any) func(*v1alpha1.PermissionGrant) client.Patch {
		return func(*v1alpha1.PermissionGrant) client.Patch {
			return patchOf(map[string]any{"op": "replace", "path": path, "value": value})
		}
	}
	const pendingStill, approvedStill = v1alpha1.GrantPending, v1alpha1.GrantApproved
	tests := []answerTest{
		// Who.
		{"an approver approves", nil, person(&carla), approve, 0, "", v1alpha1.GrantApproved},
		{"an approver denies", nil, person(&carla), deny, 0, "", v1alpha1.GrantDenied},
		{"the session's human user approves, where no second person is required", nil, person(&dora), approve, 0, "", v1alpha1.GrantApproved},
		{"a ServiceAccount that the cluster policy lists approves", nil, person(&releaseBot), approve, 0, "", v1alpha1.GrantApproved},
		{"a ServiceAccount that it does not list", nil, person(&unlistedBot), approve, 403, "spec.decisions[0]: Forbidden: ServiceAccount ci/unlisted-bot may not answer", pendingStill},
		{"a person without the verb approve", nil, person(&ben), approve, 403, "spec.decisions[0]: Forbidden: needs the verb approve", pendingStill},
		{"the requester with cluster-admin", nil, agent, approve, 403, "stepbeyond-floor-self", pendingStill},
		{"another governed identity with cluster-admin", nil, cousin, approve, 403, "stepbeyond-floor-self", pendingStill},
		{"an administrator as an approver, by impersonation", nil, impersonator, approve, 403, "carries no credential-id", pendingStill},
		// What.
		{"another digest than was shown", nil, person(&carla), approveWith(map[string]any{"shownDigest": "v1:" + strings.Repeat("0", 64)}), 422, "spec.decisions[0].shownDigest: Invalid value", pendingStill},
		{"a digest cut short", nil, person(&carla), approveWith(map[string]any{"shownDigest": "v1:0000"}), 422, "spec.decisions[0].shownDigest: Invalid value", pendingStill},
		{"the name of another approver", nil, person(&carla), approveWith(map[string]any{"approver": benName}), 403, "spec.decisions[0].approver: Forbidden", pendingStill},
		{"the caller's own name", nil, person(&carla), approveWith(map[string]any{"approver": carlaName}), 0, "", v1alpha1.GrantApproved},
		{"a time of long ago", nil, person(&carla), approveWith(map[string]any{"decidedTime": "2020-01-01T00:00:00Z"}), 403, "spec.decisions[0].decidedTime: Forbidden", pendingStill},
		{"the uid of another grant", nil, person(&carla), approveWith(map[string]any{"grantUID": "11111111-2222-3333-4444-555555555555"}), 403, "spec.decisions[0].grantUID: Forbidden", pendingStill},
		{"groups that the caller is not in", nil, person(&carla), approveWith(map[string]any{"approverGroups": []string{"system:masters"}}), 403, "spec.decisions[0].approverGroups: Forbidden", pendingStill},
		{"two answers at once", nil, person(&carla), func(g *v1alpha1.PermissionGrant) client.Patch {
			value := map[string]any{"verdict": "Approve", "shownDigest": g.Spec.Request.Digest}
			return patchOf(map[string]any{"op": "add", "path": "/spec/decisions/-", "value": value}, map[string]any{"op": "add", "path": "/spec/decisions/-", "value": value})
		}, 403, "spec.decisions: Forbidden: one request adds one answer", pendingStill},
		{"an answer and a revocation at once", nil, person(&carla), func(g *v1alpha1.PermissionGrant) client.Patch {
			return patchOf(map[string]any{"op": "add", "path": "/spec/decisions/-", "value": map[string]any{"verdict": "Deny", "shownDigest": g.Spec.Request.Digest}},
				map[string]any{"op": "add", "path": "/spec/revocation", "value": map[string]any{"reason": "both"}})
		}, 403, "spec.revocation: Forbidden", pendingStill},
		{"a changed question", nil, person(&carla), replaced("/spec/request/useWithinSeconds", 1000000), 422, "spec.request: Invalid value", pendingStill},
		// Again.
		{"an approved grant is approved again", byCarla(v1alpha1.VerdictApprove), person(&dora), approve, 403, "spec.decisions[1]: Forbidden: the grant is approved and cannot be decided again", approvedStill},
		{"an approved grant is denied", byCarla(v1alpha1.VerdictApprove), person(&carla), deny, 403, "spec.decisions[1]: Forbidden: the grant is approved and cannot be decided again", approvedStill},
		{"a denied grant is approved", byCarla(v1alpha1.VerdictDeny), person(&dora), approve, 403, "spec.decisions[1]: Forbidden: the grant is closed: Denied", v1alpha1.GrantDenied},
		{"an earlier answer is changed", byCarla(v1alpha1.VerdictDeny), person(&carla), replaced("/spec/decisions/0/verdict", "Approve"), 422, "spec.decisions: Invalid value", v1alpha1.GrantDenied},
		{"an earlier answer is removed", byCarla(v1alpha1.VerdictDeny), person(&carla), replaced("/spec/decisions", []any{}), 422, "spec.decisions: Invalid value", v1alpha1.GrantDenied},
		{"an approved grant is revoked", byCarla(v1alpha1.VerdictApprove), person(&dora), revoke, 0, "", v1alpha1.GrantRevoked},
		{"a grant is revoked without the verb approve", byCarla(v1alpha1.VerdictApprove), person(&ben), revoke, 403, "spec.revocation: Forbidden: needs the verb approve", approvedStill},
		{"a grant is revoked by the agent", byCarla(v1alpha1.VerdictApprove), agent, revoke, 403, "stepbeyond-floor-self", approvedStill},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := configMap(ns, fmt.Sprintf("target-%d", i))
			must(t, target)
			g := h.ask(t, remove(target))
			if tt.before != nil {
				tt.before(t, h, g)
			}
			h.expectAnswer(t, g, tt)
		})
	}
}

func (h *home) expectAnswer(t *testing.T, g *v1alpha1.PermissionGrant, tt answerTest) {
	t.Helper()
	before := h.grant(t, g.Name).Spec
	who := tt.who()
	err := who.Patch(t.Context(), g.DeepCopy(), tt.patch(g))
	got := understand(err, nil)
	if got.Code != tt.code || !strings.Contains(got.message, tt.says) || (err == nil) != (tt.says == "") {
		t.Errorf("got %d %v, want %d %q", got.Code, err, tt.code, tt.says)
	}
	eventually(t, func() error {
		if state := h.grant(t, g.Name).Status.State; state != tt.want {
			return fmt.Errorf("the grant is %q, want %q", state, tt.want)
		}
		return nil
	})
	after := h.grant(t, g.Name)
	if err != nil {
		if diff := cmp.Diff(before, after.Spec); diff != "" {
			t.Errorf("a refused answer changed the grant (-before +after):\n%s", diff)
		}
		return
	}
	if after.Spec.Revocation != nil {
		if by := after.Spec.Revocation.By; by != who.username || after.Spec.Revocation.Time == nil {
			t.Errorf("revoked by %q at %v, want %s and a time", by, after.Spec.Revocation.Time, who.username)
		}
		return
	}
	d := after.Spec.Decisions[len(after.Spec.Decisions)-1]
	if d.Approver != who.username || d.GrantUID != after.UID || d.DecidedTime == nil || time.Since(d.DecidedTime.Time).Abs() > time.Minute || d.PolicyIdentity == "" {
		t.Errorf("the answer is stamped %+v, want %s, the grant's uid, the policies and a time of now", d, who.username)
	}
}

// Proves G-3, G-9.
func TestWhereTwoPeopleMustApproveTheSessionsUserIsNoneOfThem(t *testing.T) {
	const ns = "second-person"
	h := at(t, ns)
	must(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "petra-approves"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stepbeyond-approver"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: petraName}},
	})
	target := configMap(ns, "target")
	must(t, target)
	g := h.ask(t, remove(target))
	step := func(name string, who *actor, says string, want v1alpha1.GrantState) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			code := int32(0)
			if says != "" {
				code = 403
			}
			h.expectAnswer(t, g, answerTest{who: func() *actor { return who }, patch: approveWith(nil), code: code, says: says, want: want})
		})
	}
	step("the session's user is refused", dora, "the agent works for you", v1alpha1.GrantPending)
	step("the first of two approves", carla, "", v1alpha1.GrantPending)
	step("the same one does not count twice", carla, "you have answered already", v1alpha1.GrantPending)
	if got := h.agent.try(t, remove(target)); got.outcome != pending("PermissionPending") {
		t.Errorf("with one of two approvals: %+v %s", got.outcome, got.message)
	}
	step("the second approves", petra, "", v1alpha1.GrantApproved)
	if got := h.agent.try(t, remove(target)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("with both: %+v %s", got.outcome, got.message)
	}
}
