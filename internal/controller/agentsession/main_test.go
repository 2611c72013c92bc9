package agentsession_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	"stepbeyond.dev/stepbeyond/internal/controller/agentsession"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const manager = "system:serviceaccount:stepbeyond-system:stepbeyond-manager"

var (
	kubeconfig *rest.Config
	// k8s reads and writes past any cache.
	k8s client.WithWatch
)

func TestMain(m *testing.M) { env.Main(m, prepare) }

func prepare(ctx context.Context, plane *env.Env) (err error) {
	kubeconfig = plane.Admin()
	if k8s, err = plane.Client(); err != nil {
		return err
	}
	for _, object := range policies() {
		if err := k8s.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// policies are one cluster policy and the profiles that the tests label namespaces with.
func policies() []client.Object {
	profile := func(name string, caps *v1alpha1.Caps, user v1alpha1.TemplateUser, lifetime v1alpha1.SessionLifetime) *v1alpha1.AgentPolicy {
		return &v1alpha1.AgentPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: enforcement.SystemNamespace, Name: name},
			Spec: v1alpha1.AgentPolicySpec{
				Caps: caps,
				SessionTemplates: []v1alpha1.SessionTemplate{{
					Name: "agent", ServiceAccountName: "agent", Lifetime: lifetime, User: user,
					Authority: v1alpha1.Authority{
						Stages:       []v1alpha1.Stage{v1alpha1.StageExecute},
						Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal},
					},
					MaxAgeSeconds: 3600,
				}},
			},
		}
	}
	fixed := v1alpha1.TemplateUser{Source: v1alpha1.UserSourceFixed, Name: "checkout-automation"}
	annotated := v1alpha1.TemplateUser{Source: v1alpha1.UserSourcePodAnnotation}
	cluster := &v1alpha1.ClusterAgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1alpha1.ClusterAgentPolicySpec{
			BaselineVersion: "v1",
			Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}},
			}},
		},
	}
	for _, name := range []string{"standard", "capped", "annotated"} {
		cluster.Spec.Profiles = append(cluster.Spec.Profiles, v1alpha1.ProfileBinding{
			Name: name, AgentPolicyName: name, FloorEnforcement: v1alpha1.FloorEnforcementEnforce,
		})
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: enforcement.SystemNamespace}},
		profile("standard", nil, fixed, v1alpha1.SessionLifetimeWorkload),
		profile("capped", &v1alpha1.Caps{MaxSessions: new(int32(1))}, fixed, v1alpha1.SessionLifetimePod),
		profile("annotated", nil, annotated, v1alpha1.SessionLifetimePod),
		cluster,
	}
}

// proof is what the API server is said to be proven to enforce.
type proof struct {
	asked   time.Time
	proven  bool
	covers  bool
	changed chan struct{}
}

func (p *proof) Proven() (time.Time, bool)                  { return p.asked, p.proven }
func (p *proof) EnforcesServiceAccount(string, string) bool { return p.covers }
func (p *proof) EnforcesUser(string) bool                   { return p.covers }
func (p *proof) Changed() <-chan struct{}                   { return p.changed }

// operator is one start of the controllers, driven by hand so that nothing has to be waited for.
type operator struct {
	store     *policystore.Store
	proof     *proof
	roles     *roles.Roles
	birth     *agentsession.Birth
	status    *agentsession.Status
	retention *agentsession.Retention
	events    *events.FakeRecorder
}

func start(t *testing.T) *operator {
	t.Helper()
	o := &operator{
		store: &policystore.Store{Reader: k8s}, events: events.NewFakeRecorder(32),
		proof: &proof{asked: time.Now(), proven: true, covers: true}, roles: &roles.Roles{Reader: k8s},
	}
	o.readRoles(t)
	o.birth = &agentsession.Birth{Client: k8s, Live: k8s, Store: o.store, Recorder: o.events}
	o.status = &agentsession.Status{Client: k8s, Live: k8s, Store: o.store, Proof: o.proof, Roles: o.roles, Manager: manager}
	o.retention = &agentsession.Retention{Client: k8s, Store: o.store}
	o.load(t)
	return o
}

func (o *operator) readRoles(t *testing.T) {
	t.Helper()
	if _, err := o.roles.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
}

func (o *operator) load(t *testing.T) {
	t.Helper()
	if err := o.store.Rebuild(t.Context(), metav1.Now()); err != nil {
		t.Fatal(err)
	}
}

func (o *operator) bear(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := o.birth.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil {
		t.Fatal(err)
	}
}

// observe reconciles the status of a session and returns it.
func (o *operator) observe(t *testing.T, session *v1alpha1.AgentSession) v1alpha1.AgentSessionStatus {
	t.Helper()
	key := client.ObjectKeyFromObject(session)
	if _, err := o.status.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if err := k8s.Get(t.Context(), key, session); err != nil {
		t.Fatal(err)
	}
	return session.Status
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := k8s.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// namespace makes a namespace of its own for each test, because nothing finishes deleting one here.
func namespace(t *testing.T, profile string) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "checkout-", Labels: map[string]string{v1alpha1.LabelProfile: profile},
	}}
	create(t, object)
	return object.Name
}

func pod(namespace, name string, owner client.Object, kind string) *corev1.Pod {
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: "agent", Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
	}
	if owner != nil {
		object.OwnerReferences = controlledBy(owner, kind)
	}
	return object
}

func controlledBy(owner client.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)}}
}

func sessions(t *testing.T, namespace string) []v1alpha1.AgentSession {
	t.Helper()
	var list v1alpha1.AgentSessionList
	if err := k8s.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// opened makes a session as a person would.
func opened(t *testing.T, namespace, name string, deadline time.Time, annotations map[string]string) *v1alpha1.AgentSession {
	t.Helper()
	session := &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
		Spec: v1alpha1.AgentSessionSpec{
			Identity: v1alpha1.SessionIdentity{Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "agent"},
			UserName: "carla@acme.example", ModelTier: v1alpha1.ModelTierLarge, InitiativeMode: v1alpha1.InitiativeModeStrict,
			Authority: v1alpha1.Authority{
				Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal},
			},
			DeadlineTime: metav1.NewTime(deadline),
		},
	}
	create(t, session)
	return session
}

func patchStatus(t *testing.T, session *v1alpha1.AgentSession, patch string) {
	t.Helper()
	if err := k8s.Status().Patch(t.Context(), session, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := k8s.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}
