package agentsession_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
)

// written is a pod that the agent of the session wrote.
func written(namespace, name, session string) *corev1.Pod {
	object := pod(namespace, name, nil, "")
	object.Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: namespace + "/" + session}
	return object
}

// familyOf makes a session for pod agent-0, and its child for pod helper that the agent wrote.
func familyOf(t *testing.T, o *operator, checkout string) (parent, child *v1alpha1.AgentSession) {
	t.Helper()
	agent := pod(checkout, "agent-0", nil, "")
	create(t, agent)
	o.bear(t, agent)
	parent = &sessions(t, checkout)[0]
	helper := written(checkout, "helper", parent.Name)
	create(t, helper)
	o.bear(t, helper)
	for _, s := range sessions(t, checkout) {
		if s.Spec.Parent != nil {
			child = &s
		}
	}
	if child == nil {
		t.Fatal("the pod that the agent wrote has no child session")
	}
	return parent, child
}

func TestBirthMakesTheChildThatTheWebhookDerives(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	parent, child := familyOf(t, o, checkout)
	helper := &corev1.Pod{}
	if err := k8s.Get(t.Context(), client.ObjectKey{Namespace: checkout, Name: "helper"}, helper); err != nil {
		t.Fatal(err)
	}
	opening := identity.Opening{
		Pod: helper, Root: v1alpha1.RootOwner{Kind: "Pod", Name: "helper", UID: helper.UID}, Snapshot: o.store.Current(),
		Sessions: []v1alpha1.AgentSession{*parent}, Now: time.Now(),
	}
	derived, refusal := opening.Session()
	if refusal != nil {
		t.Fatal(refusal.Text)
	}
	if diff := cmp.Diff([]any{derived.Name, derived.Labels, derived.Spec}, []any{child.Name, child.Labels, child.Spec}); diff != "" {
		t.Errorf("child (-derived +created):\n%s", diff)
	}
	got := o.observe(t, child)
	want(t, "status", []any{v1alpha1.SessionActive, manager, v1alpha1.UserSourceFixed, []v1alpha1.LivePod{{Name: "helper", UID: helper.UID}}},
		[]any{got.State, got.CreatedBy, got.UserSource, got.LivePods})
	want(t, "pods of the parent", 1, len(o.observe(t, parent).LivePods))
}

func TestBirthMakesNoChild(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, o *operator, parent *v1alpha1.AgentSession)
		event  string
	}{
		{"of a session that has ended", func(t *testing.T, _ *operator, parent *v1alpha1.AgentSession) {
			patchStatus(t, parent, `{"status":{"state":"Ended"}}`)
		}, ""},
		{"of a session that may have none, and says so", func(t *testing.T, _ *operator, parent *v1alpha1.AgentSession) {
			parent.Spec.Authority.Budgets = &v1alpha1.Budgets{MaxChildSessions: new(int32(0))}
			if err := k8s.Update(t.Context(), parent); err != nil {
				t.Fatal(err)
			}
		}, "Warning ChildSessionCapReached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkout := namespace(t, "standard")
			o := start(t)
			agent := pod(checkout, "agent-0", nil, "")
			create(t, agent)
			o.bear(t, agent)
			parent := &sessions(t, checkout)[0]
			tt.change(t, o, parent)
			helper := written(checkout, "helper", parent.Name)
			create(t, helper)
			o.bear(t, helper)
			want(t, "sessions", 1, len(sessions(t, checkout)))
			event := ""
			select {
			case event = <-o.events.Events:
			default:
			}
			if !strings.HasPrefix(event, tt.event) || (event == "") != (tt.event == "") {
				t.Errorf("event %q, want %q", event, tt.event)
			}
		})
	}
}

func TestAChildShowsWhatComesDownFromItsParent(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	parent, child := familyOf(t, o, checkout)
	o.observe(t, parent)
	want(t, "beside a parent that acts", "Ready=True/Active", conditions(o.observe(t, child))[0])
	patchStatus(t, parent, `{"status":{"state":"Suspended"}}`)
	got := o.observe(t, child)
	want(t, "below a suspended parent", []any{v1alpha1.SessionActive, "Ready=False/ParentSuspended"}, []any{got.State, conditions(got)[0]})
	patchStatus(t, parent, `{"status":{"state":"Active"}}`)
	want(t, "once the parent goes on", "Ready=True/Active", conditions(o.observe(t, child))[0])
	patchStatus(t, parent, `{"status":{"state":"Ended"}}`)
	got = o.observe(t, child)
	want(t, "below a parent that has ended", []any{v1alpha1.SessionEnded, "Ready=False/ParentEnded"}, []any{got.State, conditions(got)[0]})
	if got.EndTime == nil {
		t.Error("endTime is missing")
	}
	remove(t, parent)
	want(t, "and when the parent is gone", "Ready=False/ParentEnded", conditions(o.observe(t, child))[0])
}

func TestACacheThatLacksTheParentEndsNoChild(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	parent, child := familyOf(t, o, checkout)
	o.status.Client = interceptor.NewClient(k8s, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if key.Name == parent.Name {
				return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("agentsessions").GroupResource(), key.Name)
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	want(t, "state", v1alpha1.SessionActive, o.observe(t, child).State)
}

func TestTheParentOfASessionIsImmutable(t *testing.T) {
	checkout := namespace(t, "standard")
	parent, child := familyOf(t, start(t), checkout)
	for name, change := range map[string]func(*v1alpha1.AgentSession){
		"taken away": func(s *v1alpha1.AgentSession) { s.Spec.Parent = nil },
		"changed":    func(s *v1alpha1.AgentSession) { s.Spec.Parent.UID = types.UID("another") },
	} {
		changed := child.DeepCopy()
		change(changed)
		if err := k8s.Update(t.Context(), changed); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.parent") {
			t.Errorf("%s: %v, want spec.parent to be immutable", name, err)
		}
	}
	added := parent.DeepCopy()
	added.Spec.Parent = child.Spec.Parent
	if err := k8s.Update(t.Context(), added); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.parent") {
		t.Errorf("added: %v, want spec.parent to be immutable", err)
	}
	child.Spec.Authority.Budgets.MaxChildSessions = new(int32(0))
	if err := k8s.Update(t.Context(), child); err != nil {
		t.Errorf("a smaller budget: %v", err)
	}
}

// Proves K-10, M-2.
func TestASessionWhoseRoleEscapesIsPromptOnly(t *testing.T) {
	checkout := namespace(t, "standard")
	session := opened(t, checkout, "by-hand", inAnHour(), nil)
	o := start(t)
	want(t, "without a role", v1alpha1.GuaranteeRuntimeBacked, o.observe(t, session).Guarantee)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: checkout, Name: "too-much"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: checkout, Name: session.Spec.Identity.ServiceAccountName}},
	}
	create(t, binding)
	o.readRoles(t)
	got := o.observe(t, session)
	want(t, "with cluster-admin", []any{v1alpha1.GuaranteePromptOnly, v1alpha1.LostConfinement, "GuaranteeMet=False/RoleEscapes"},
		[]any{got.Guarantee, got.Degraded[0], conditions(got)[1]})
	remove(t, binding)
	o.readRoles(t)
	want(t, "without it again", v1alpha1.GuaranteeRuntimeBacked, o.observe(t, session).Guarantee)
}

// statefulSet is a workload whose pods keep their names.
func statefulSet(t *testing.T, namespace string) *appsv1.StatefulSet {
	t.Helper()
	labels := map[string]string{"app": "agent"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", "", nil, "").Spec},
		},
	}
	create(t, set)
	return set
}

// Proves G-3 for sessions that follow pods.
func TestASuspendedSessionOfAPodThatIsGoneHoldsBackTheNextPod(t *testing.T) {
	checkout := namespace(t, "capped") // sessions with lifetime Pod
	o := start(t)
	set := statefulSet(t, checkout)
	first := pod(checkout, "agent-0", set, "StatefulSet")
	create(t, first)
	o.bear(t, first)
	session := &sessions(t, checkout)[0]
	o.observe(t, session)
	patchStatus(t, session, `{"status":{"state":"Suspended"}}`)
	remove(t, first)
	want(t, "state when its pod is gone", v1alpha1.SessionSuspended, o.observe(t, session).State)
	next := pod(checkout, "agent-0", set, "StatefulSet")
	create(t, next)
	o.bear(t, next)
	want(t, "sessions", 1, len(sessions(t, checkout)))
	if event := <-o.events.Events; !strings.HasPrefix(event, "Warning SessionHeldBack") {
		t.Errorf("event %q, want SessionHeldBack", event)
	}
	patchStatus(t, session, `{"status":{"state":"Active"}}`)
	want(t, "state once a person resumes it", v1alpha1.SessionEnded, o.observe(t, session).State)
	o.bear(t, next)
	want(t, "sessions once a person has resumed it", 2, len(sessions(t, checkout)))
}

func TestACapIsLookedAtAgain(t *testing.T) {
	checkout := namespace(t, "capped")
	o := start(t)
	first, second := pod(checkout, "first", nil, ""), pod(checkout, "second", nil, "")
	create(t, first, second)
	o.bear(t, first)
	result, err := o.birth.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(second)})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("result %+v and error %v, want to look again", result, err)
	}
}
