package enforcement_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	"stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// operator is one start of the controllers, driven by hand so that nothing has to be waited for.
type operator struct {
	store  *policystore.Store
	scope  *enforcement.Scope
	status *enforcement.Status
	roles  *roles.Roles
	events *events.FakeRecorder
}

func start(t *testing.T) *operator {
	t.Helper()
	canary, err := admission.NewCanary(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{store: &policystore.Store{Reader: k8s}, roles: &roles.Roles{Reader: k8s}, events: events.NewFakeRecorder(32)}
	o.readRoles(t)
	state := &enforcement.State{}
	guard, err := admission.NewGuard(k8s, k8s)
	if err != nil {
		t.Fatal(err)
	}
	o.scope = &enforcement.Scope{
		Client: k8s, Live: k8s, Store: o.store, Canary: canary, Endpoint: fixed(endpoint), Manager: manager, State: state,
		Releases: &enforcement.Releases{Client: k8s, Recorder: o.events, Metric: enforcement.NewReleasesMetric()},
		Guard:    guard,
		Alarm:    &enforcement.Alarm{Policies: k8s, Recorder: o.events, Metrics: enforcement.NewMetrics(), State: state},
	}
	o.status = &enforcement.Status{Client: k8s, Store: o.store, State: state, Roles: o.roles, Recorder: o.events}
	return o
}

func (o *operator) readRoles(t *testing.T) {
	t.Helper()
	if _, err := o.roles.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
}

// loaded is a start whose first proof is still to come.
func loaded(t *testing.T) *operator {
	t.Helper()
	o := start(t)
	if err := o.store.Rebuild(t.Context(), metav1.Now()); err != nil {
		t.Fatal(err)
	}
	o.observe(t)
	return o
}

// step is a change of the policies: snapshot, scope, proof, status.
func (o *operator) step(t *testing.T) {
	t.Helper()
	if err := o.store.Rebuild(t.Context(), metav1.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.scope.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	o.observe(t)
}

// observe writes the status of every policy.
func (o *operator) observe(t *testing.T) {
	t.Helper()
	var list v1alpha1.ClusterAgentPolicyList
	if err := k8s.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if _, err := o.status.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}); err != nil {
			t.Fatal(err)
		}
	}
}

// inForce is the scope that the webhook configuration and the floor hold; they must hold the same one.
func inForce(t *testing.T) admission.Scope {
	t.Helper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: admission.WebhookConfiguration}, &configuration); err != nil {
		t.Fatal(err)
	}
	var floor admissionregistrationv1.ValidatingAdmissionPolicy
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: admission.FloorPods}, &floor); err != nil {
		t.Fatal(err)
	}
	entry := slices.IndexFunc(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name == admission.EntryEnforce
	})
	expressions := admission.GovernedExpressions(configuration.Webhooks[entry].MatchConditions)
	if diff := cmp.Diff(expressions, admission.GovernedExpressions(floor.Spec.MatchConditions)); diff != "" {
		t.Errorf("webhook and floor hold different scopes (-webhook +floor):\n%s", diff)
	}
	scope, err := admission.ReadBack(expressions...)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := k8s.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, isNamespace := object.(*corev1.Namespace); isNamespace {
				return // nothing finishes deleting a namespace here
			}
			if err := client.IgnoreNotFound(k8s.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Error(err)
			}
		})
	}
}

func namespace(name, profile string) *corev1.Namespace {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if profile != "" {
		object.Labels = map[string]string{v1alpha1.LabelProfile: profile}
	}
	return object
}

func relabel(t *testing.T, name, profile string) {
	t.Helper()
	object := namespace(name, "")
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1alpha1.LabelProfile, profile))
	if err := k8s.Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
}

func clusterPolicy(name string) *v1alpha1.ClusterAgentPolicy {
	return &v1alpha1.ClusterAgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ClusterAgentPolicySpec{
			BaselineVersion: "v1",
			Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}},
			}},
			Profiles: []v1alpha1.ProfileBinding{
				{Name: "standard", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementEnforce},
				{Name: "onboarding", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementAudit},
			},
		},
	}
}

func profile() *v1alpha1.AgentPolicy {
	return &v1alpha1.AgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: admission.SystemNamespace, Name: "standard"},
		Spec:       v1alpha1.AgentPolicySpec{RulesEnforcement: v1alpha1.EnforcementEnforce},
	}
}

// conditions are the conditions of a policy as type=status/reason, sorted by nothing.
func conditions(t *testing.T, name string) []string {
	t.Helper()
	var lines []string
	for _, c := range policyStatus(t, name).Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return lines
}

func policyStatus(t *testing.T, name string) v1alpha1.ClusterAgentPolicyStatus {
	t.Helper()
	var object v1alpha1.ClusterAgentPolicy
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: name}, &object); err != nil {
		t.Fatal(err)
	}
	return object.Status
}

func want(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestBeforeAnyPolicyEverythingIsInForceForTheCanaryOnly(t *testing.T) {
	o := start(t)
	o.step(t)
	want(t, "scope", admission.Scope{}, inForce(t))
	if _, proven := o.scope.State.Proven(); !proven {
		t.Errorf("nothing is proven: %v", o.scope.State.Current().Failure)
	}
}

func TestALabelledNamespaceIsEnforcedUntilItIsReleased(t *testing.T) {
	create(t, namespace("checkout", "standard"), namespace("lab", "onboarding"), profile(), clusterPolicy("default"))
	o := start(t)
	o.step(t)
	want(t, "scope under an Enforce profile", []string{"checkout"}, inForce(t).Namespaces)
	if !o.scope.State.EnforcesServiceAccount("checkout", "agent") || o.scope.State.EnforcesServiceAccount("lab", "agent") {
		t.Error("checkout must be enforced, lab only audited")
	}
	got := policyStatus(t, "default")
	if got.Enforcement.LastProvenTime.IsZero() {
		t.Error("lastProvenTime is missing")
	}
	got.Enforcement.LastProvenTime, got.Conditions = nil, nil
	want(t, "status", v1alpha1.ClusterAgentPolicyStatus{
		ObservedGeneration: 1,
		Governed:           &v1alpha1.GovernedCounts{Namespaces: 1, OnboardingNamespaces: 1},
		Enforcement: &v1alpha1.EnforcementStatus{
			Webhook: v1alpha1.EnforcementInForce, Floor: v1alpha1.EnforcementInForce, FloorPolicies: 3,
		},
	}, got)
	want(t, "conditions", []string{"Ready=True/Compiled", "EnforcementReady=True/CanaryDenied", "IdentitiesConfined=True/RolesConfined"}, conditions(t, "default"))

	for _, label := range []string{`"onboarding"`, `"no-such-profile"`, "null"} {
		relabel(t, "checkout", label)
		o.step(t)
		want(t, "scope after the label became "+label, []string{"checkout"}, inForce(t).Namespaces)
	}

	restarted := start(t)
	restarted.step(t)
	want(t, "scope after a restart", []string{"checkout"}, inForce(t).Namespaces)

	object := &v1alpha1.ClusterAgentPolicy{}
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: "default"}, object); err != nil {
		t.Fatal(err)
	}
	object.Spec.Governed.Released = []v1alpha1.ReleasedNamespace{{Namespace: "checkout", Reason: "moved"}}
	if err := k8s.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	restarted.step(t)
	want(t, "scope after the release", []string(nil), inForce(t).Namespaces)
}

func TestANamespaceThatNoLongerExistsIsLetGo(t *testing.T) {
	create(t, namespace("payments", ""), profile(), clusterPolicy("default"))
	before, err := admission.Configuration{
		Scope: admission.Scope{Namespaces: []string{"deleted", "payments"}}, Endpoint: endpoint, Manager: manager, Version: "v1",
	}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	guard, err := admission.NewGuard(k8s, k8s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guard.Put(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	start(t).step(t)
	want(t, "scope", []string{"payments"}, inForce(t).Namespaces)
}

func TestALostWebhookConfigurationLetsNoNamespaceGo(t *testing.T) {
	create(t, namespace("sticky", "standard"), profile(), clusterPolicy("default"))
	start(t).step(t)
	relabel(t, "sticky", "null")
	lost := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admission.WebhookConfiguration}}
	if err := k8s.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	start(t).step(t)
	if got := inForce(t).Namespaces; !slices.Contains(got, "sticky") {
		t.Errorf("scope %v does not hold what the floor held", got)
	}
}

func TestWithoutAValidPolicyTheLastScopeStays(t *testing.T) {
	object := clusterPolicy("users")
	object.Spec.Profiles = nil
	object.Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: "oidc:release-notes-agent", SessionNamespace: "default"}}
	object.Spec.Governed.ExemptServiceAccounts = []v1alpha1.ExemptServiceAccount{{
		ServiceAccountReference: v1alpha1.ServiceAccountReference{Namespace: "checkout", Name: "ingress"}, Reason: "leader election",
	}}
	create(t, object)
	o := start(t)
	o.step(t)
	before := inForce(t)
	want(t, "users", []string{"oidc:release-notes-agent"}, before.Users)
	want(t, "exempt", []admission.ServiceAccount{{Namespace: "checkout", Name: "ingress"}}, before.Exempt)
	if err := k8s.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	o.step(t)
	want(t, "scope without a policy", before, inForce(t))

	create(t, clusterPolicy("default"))
	o.step(t)
	want(t, "users that a valid policy does not list", []string(nil), inForce(t).Users)
}

// Proves K-2, K-9 and M-2.
func TestAScopeThatDoesNotFitLeavesTheLastOneInForce(t *testing.T) {
	create(t, clusterPolicy("default"))
	o := start(t)
	o.step(t)
	before := inForce(t)
	big := clusterPolicy("big")
	big.Spec.Profiles = nil
	for i := range 256 { // the most that one policy can list
		big.Spec.Governed.Users = append(big.Spec.Governed.Users, v1alpha1.GovernedUser{
			Name: fmt.Sprintf("%03d%s", i, strings.Repeat("u", 250)), SessionNamespace: "default",
		})
	}
	create(t, big)
	for i := range 10 {
		more := clusterPolicy(fmt.Sprintf("big-%d", i))
		more.Spec.Profiles, more.Spec.Governed.Users = nil, slices.Clone(big.Spec.Governed.Users)
		for j := range more.Spec.Governed.Users {
			more.Spec.Governed.Users[j].Name = fmt.Sprintf("%d%s", i, more.Spec.Governed.Users[j].Name)
		}
		create(t, more)
	}
	o.step(t)
	want(t, "scope", before, inForce(t))
	want(t, "conditions", []string{"Ready=False/ScopeTooLarge", "EnforcementReady=False/ScopeTooLarge", "IdentitiesConfined=True/RolesConfined", "Stalled=True/ScopeTooLarge"}, conditions(t, "big"))
	if _, proven := o.scope.State.Proven(); !proven {
		t.Error("the last scope is in force and proven")
	}
	if user := big.Spec.Governed.Users[0].Name; o.scope.State.EnforcesUser(user) {
		t.Errorf("%s is not enforced", user)
	}
}

func TestAWebhookThatDoesNotAnswerIsNoticedAndRecovers(t *testing.T) {
	create(t, clusterPolicy("default"), profile())
	o := start(t)
	o.step(t)
	changed := o.scope.State.Changed()

	answering.Store(false)
	t.Cleanup(func() { answering.Store(true) })
	o.step(t)
	want(t, "conditions", []string{"Ready=True/Compiled", "EnforcementReady=False/CanaryFailed", "IdentitiesConfined=True/RolesConfined"}, conditions(t, "default"))
	lost := policyStatus(t, "default")
	want(t, "webhook", v1alpha1.EnforcementLost, lost.Enforcement.Webhook)
	want(t, "floor, which does not need the webhook", v1alpha1.EnforcementInForce, lost.Enforcement.Floor)
	if _, proven := o.scope.State.Proven(); proven {
		t.Error("enforcement must not count as proven")
	}
	<-changed
	want(t, "metric", []float64{0, 1}, metric(o))
	for _, condition := range lost.Conditions {
		if strings.Contains(condition.Message, endpoint.PathPrefix) {
			t.Errorf("condition %s shows the secret path: %s", condition.Type, condition.Message)
		}
	}

	answering.Store(true)
	o.step(t)
	<-changed
	want(t, "conditions", []string{"Ready=True/Compiled", "EnforcementReady=True/CanaryDenied", "IdentitiesConfined=True/RolesConfined"}, conditions(t, "default"))
	want(t, "metric", []float64{1, 1}, metric(o))
	for _, reason := range []string{"Normal EnforcementProven", "Warning EnforcementLost", "Normal EnforcementProven"} {
		if got := <-o.events.Events; !strings.HasPrefix(got, reason) {
			t.Errorf("event %q, want %s", got, reason)
		}
	}
}

// Proves K-2.
func TestARestartLeavesWhatIsKnownUntilItsFirstProof(t *testing.T) {
	create(t, clusterPolicy("default"), profile())
	start(t).step(t)
	proven := policyStatus(t, "default")
	loaded(t)
	want(t, "status after a restart", proven, policyStatus(t, "default"))

	age(t, "default", 2*time.Minute)
	o := loaded(t)
	want(t, "conditions when the last proof is too old", []string{"Ready=True/Compiled", "EnforcementReady=Unknown/NotProvenYet", "IdentitiesConfined=True/RolesConfined"}, conditions(t, "default"))

	answering.Store(false)
	t.Cleanup(func() { answering.Store(true) })
	o.step(t)
	lost := []string{"Ready=True/Compiled", "EnforcementReady=False/CanaryFailed", "IdentitiesConfined=True/RolesConfined"}
	want(t, "conditions after the first proof", lost, conditions(t, "default"))
	if got := <-o.events.Events; !strings.HasPrefix(got, "Warning EnforcementLost") {
		t.Errorf("event %q, want EnforcementLost", got)
	}

	age(t, "default", 2*time.Minute)
	loaded(t)
	want(t, "conditions of what was lost already", lost, conditions(t, "default"))
}

// age makes the last proof of a policy older.
func age(t *testing.T, name string, by time.Duration) {
	t.Helper()
	object := &v1alpha1.ClusterAgentPolicy{}
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
		t.Fatal(err)
	}
	object.Status.Enforcement.LastProvenTime = new(metav1.NewTime(time.Now().Add(-by)))
	if err := k8s.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// metric is the gauge for webhook and floor.
func metric(o *operator) []float64 {
	return []float64{
		testutil.ToFloat64(o.scope.Alarm.Metrics.Proven.WithLabelValues("webhook")), testutil.ToFloat64(o.scope.Alarm.Metrics.Proven.WithLabelValues("floor")),
	}
}

func TestAPolicyWithADefectIsStalledAndNamesIt(t *testing.T) {
	bad := v1alpha1.Rule{
		Name: "ask-pods", Class: v1alpha1.RuleClassAsk, When: "request.verb ==\n  nothing",
		Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{""}, Resources: []string{"pods"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate},
		}}},
	}
	tests := []struct {
		name    string
		change  func(*v1alpha1.ClusterAgentPolicy)
		ready   string
		stalled bool
		message string
	}{
		{
			name:    "an expression that does not compile names rule, line and column",
			change:  func(p *v1alpha1.ClusterAgentPolicy) { p.Spec.Rules = []v1alpha1.Rule{bad} },
			ready:   "Ready=False/InvalidRule",
			stalled: true,
			message: "rules[0].when (ask-pods), line 2, column 3",
		},
		{
			name:    "a baseline that this binary does not embed",
			change:  func(p *v1alpha1.ClusterAgentPolicy) { p.Spec.BaselineVersion = "v999" },
			ready:   "Ready=False/UnknownBaseline",
			stalled: true,
			message: "baselineVersion (v999)",
		},
		{
			name:    "a profile whose AgentPolicy does not exist may appear any time",
			change:  func(p *v1alpha1.ClusterAgentPolicy) { p.Spec.Profiles[0].AgentPolicyName = "nobody" },
			ready:   "Ready=False/ProfileMissing",
			message: "AgentPolicy stepbeyond-system/nobody, which does not exist",
		},
	}
	create(t, profile())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := clusterPolicy("default")
			tt.change(object)
			create(t, object)
			o := start(t)
			o.step(t)
			got := conditions(t, "default")
			if got[0] != tt.ready || (len(got) == 4) != tt.stalled {
				t.Errorf("conditions %v, want %s and Stalled %t", got, tt.ready, tt.stalled)
			}
			if message := policyStatus(t, "default").Conditions[0].Message; !strings.Contains(message, tt.message) {
				t.Errorf("message %q does not name %q", message, tt.message)
			}
		})
	}
}

func TestTwoBindingsOfOneProfileMakeBothStalled(t *testing.T) {
	create(t, profile(), clusterPolicy("one"), clusterPolicy("two"))
	start(t).step(t)
	for _, name := range []string{"one", "two"} {
		want(t, name, []string{"Ready=False/DuplicateProfile", "EnforcementReady=True/CanaryDenied", "IdentitiesConfined=True/RolesConfined", "Stalled=True/DuplicateProfile"}, conditions(t, name))
	}
}
