package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func recorded(reason metav1.StatusReason, class string) []auditv1.Event {
	status := &metav1.Status{Status: metav1.StatusFailure, Reason: reason, Details: &metav1.StatusDetails{}}
	if class != "" {
		status.Details.Causes = []metav1.StatusCause{{Type: "stepbeyond.dev/Class", Message: class}}
	}
	return []auditv1.Event{{ResponseStatus: status}}
}

func annotated(class string) []auditv1.Event {
	return []auditv1.Event{{Annotations: map[string]string{"enforce.stepbeyond.dev/class": class}}}
}

func TestARowIsReadFromWhatKubectlPrintedAndTheAPIServerRecorded(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer answer
		says   string
		want   row
	}{{
		name: "a pending answer of the webhook",
		answer: answer{failed: true, events: recorded("PermissionPending", "ASK"), output: `Error from server (PermissionPending): admission webhook "enforce.stepbeyond.dev" denied the request: Pending: delete persistentvolumeclaims checkout/data-postgres-0 needs approval by 1 person (Destructive; rule baseline/destructive). Asked as permissiongrant/pg-7k2mq4xdva, open until 2026-12-01T10:05:31Z. Next: go on with other work. [d-01]
`},
		want: row{Class: "ASK", Verdict: verdictPending, Reason: "PermissionPending", By: enforcer, Because: "Destructive; rule baseline/destructive"},
	}, {
		name: "a refusal of the floor whose reason kubectl create drops",
		answer: answer{failed: true, events: recorded(metav1.StatusReasonForbidden, ""), output: `error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "debug" is forbidden: ValidatingAdmissionPolicy 'stepbeyond-floor-authority' with binding 'stepbeyond-floor-authority' denied request: Forbidden: create rolebindings checkout/debug is closed to agents and no approval opens it (EscalatesAuthority; rule baseline/rbac-writes). Next: hand it to a person. [floor v1]
`},
		want: row{Class: "FORBIDDEN", Verdict: verdictDeny, Reason: "Forbidden", By: "stepbeyond-floor-authority", Because: "EscalatesAuthority; rule baseline/rbac-writes"},
	}, {
		name: "a refusal of RBAC is nobody's class",
		answer: answer{failed: true, events: recorded(metav1.StatusReasonForbidden, ""), output: `Error from server (Forbidden): permissiongrants.stepbeyond.dev "pg-a" is forbidden: User "system:serviceaccount:checkout:agent" cannot patch resource "permissiongrants" in API group "stepbeyond.dev" in the namespace "checkout"
`},
		want: row{Verdict: verdictDeny, Reason: "Forbidden", By: byRBAC},
	}, {
		name: "a dead manager decides nothing",
		answer: answer{failed: true, events: recorded(metav1.StatusReasonInternalError, ""), output: `error: failed to create deployment: Internal error occurred: failed calling webhook "enforce.stepbeyond.dev": failed to call webhook: Post "https://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused
`},
		want: row{Verdict: verdictUnavailable, Reason: "InternalError", By: enforcer},
	}, {
		name:   "a quiet success has the recorded class",
		answer: answer{events: annotated("AUTO"), output: "deployment.apps/cache created\n"},
		want:   row{Class: "AUTO", Verdict: verdictAllow},
	}, {
		name: "a disclosure is read without the decision's ID",
		answer: answer{events: annotated("AUTO_WITH_DISCLOSURE"), output: `Warning: disclosed: deployments/web was not made by this session (last writer: argocd-controller) [d-01kbba1m2x]
deployment.apps/web scaled
`},
		want: row{Class: "AUTO_WITH_DISCLOSURE", Verdict: verdictAllow, Because: "disclosed: deployments/web was not made by this session (last writer: argocd-controller)"},
	}, {
		name: "a mismatch names the path",
		answer: answer{failed: true, events: recorded("GrantDigestMismatch", "ASK"), output: `Error from server (GrantDigestMismatch): admission webhook "enforce.stepbeyond.dev" denied the request: Pending: update services checkout/web is not what permissiongrant/pg-m3x8d0q7vh approves: spec.selector.app is v1:0a1b2c3d, approved v1:4e5f6071. Next: wait. [d-01]
`},
		says: `approves: (\S+) is`,
		want: row{Class: "ASK", Verdict: verdictPending, Reason: "GrantDigestMismatch", By: enforcer, Because: "spec.selector.app"},
	}, {
		name:   "a refusal outside our grammar is a failure",
		answer: answer{failed: true, events: recorded(metav1.StatusReasonForbidden, ""), output: `Error from server (Forbidden): admission webhook "enforce.stepbeyond.dev" denied the request: no`},
		want:   row{Verdict: verdictFailed, Reason: "Forbidden", By: enforcer},
	}, {
		name:   "a success that nobody classified has no class",
		answer: answer{events: []auditv1.Event{{}}, output: "configmap/note created\n"},
		want:   row{Verdict: verdictAllow},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, observe(tc.answer, tc.says)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestACrowdCountsWhoWasLetThroughAndWhatHadAnEffect(t *testing.T) {
	refused := answer{failed: true, events: annotated("ASK"), output: `Error from server (GrantUsed): admission webhook "enforce.stepbeyond.dev" denied the request: Pending: permissiongrant/pg-a was used`}
	exists := answer{failed: true, events: annotated("ASK"), output: `Error from server (AlreadyExists): ingresses.networking.k8s.io "public-web" already exists`}
	created := answer{events: annotated("ASK"), output: "ingress.networking.k8s.io/public-web created\n"}
	want := row{Class: "ASK", Verdict: "Allow for 3 of 4", Because: "effects: 2"}
	if diff := cmp.Diff(want, crowd([]answer{created, refused, exists, created})); diff != "" {
		t.Error(diff)
	}
}

func TestEveryStepHasOneWantedRow(t *testing.T) {
	steps, wanted, err := readTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Do != "" {
			continue
		}
		want := wanted[s.Step]
		if diff := cmp.Diff([]string{string(s.Who), s.What}, []string{want.Who, want.What}); diff != "" {
			t.Errorf("step %s and its wanted row name another who or what:\n%s", s.Step, diff)
		}
	}
}
