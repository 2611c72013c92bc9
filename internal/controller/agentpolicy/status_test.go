package agentpolicy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/controller/agentpolicy"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

var (
	kubeconfig *rest.Config
	k8s        client.Client
)

func TestMain(m *testing.M) { env.Main(m, prepare) }

func prepare(ctx context.Context, plane *env.Env) (err error) {
	kubeconfig = plane.Admin()
	if k8s, err = plane.Client(); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: enforcement.SystemNamespace}},
		clusterPolicy(),
		policy(enforcement.SystemNamespace, "production", v1alpha1.AgentPolicySpec{
			Initiative: &v1alpha1.Initiative{Mode: v1alpha1.InitiativeModeStandard},
		}),
	} {
		if err := k8s.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func clusterPolicy() *v1alpha1.ClusterAgentPolicy {
	return &v1alpha1.ClusterAgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1alpha1.ClusterAgentPolicySpec{
			BaselineVersion: "v1",
			Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}},
			}},
			Profiles: []v1alpha1.ProfileBinding{
				{Name: "production", AgentPolicyName: "production", FloorEnforcement: v1alpha1.FloorEnforcementEnforce},
			},
			Delegation: &v1alpha1.Delegation{NamespaceMaySet: []v1alpha1.DelegableSetting{v1alpha1.DelegableModelTier}},
		},
	}
}

func policy(namespace, name string, spec v1alpha1.AgentPolicySpec) *v1alpha1.AgentPolicy {
	spec.RulesEnforcement = v1alpha1.EnforcementEnforce
	return &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

// namespace makes a namespace of its own for each test, because nothing finishes deleting one here.
func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "payments-", Labels: labels}}
	if err := k8s.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object.Name
}

// observe reconciles one policy after a change of the policies and returns its status.
func observe(t *testing.T, object *v1alpha1.AgentPolicy) v1alpha1.AgentPolicyStatus {
	t.Helper()
	store := &policystore.Store{Reader: k8s}
	if err := store.Rebuild(t.Context(), metav1.Now()); err != nil {
		t.Fatal(err)
	}
	controller := &agentpolicy.Status{Client: k8s, Store: store}
	key := client.ObjectKeyFromObject(object)
	if _, err := controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if err := k8s.Get(t.Context(), key, object); err != nil {
		t.Fatal(err)
	}
	return object.Status
}

func conditions(status v1alpha1.AgentPolicyStatus) []string {
	var lines []string
	for _, c := range status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return lines
}

func rule(when string) v1alpha1.Rule {
	return v1alpha1.Rule{
		Name: "forbid-ledger-api", Class: v1alpha1.RuleClassForbidden, When: when,
		Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbDelete},
		}}},
	}
}

func TestAProfileSaysWhoUsesIt(t *testing.T) {
	lab := policy(enforcement.SystemNamespace, "lab", v1alpha1.AgentPolicySpec{})
	if err := k8s.Create(t.Context(), lab); err != nil {
		t.Fatal(err)
	}
	got := observe(t, lab)
	if got.Conditions[0].Message != "Profile in use by 0 namespaces." {
		t.Errorf("message %q", got.Conditions[0].Message)
	}
	got.Conditions = nil
	want := v1alpha1.AgentPolicyStatus{
		ObservedGeneration: 1, ModelTier: v1alpha1.ModelTierMedium, InitiativeMode: v1alpha1.InitiativeModeStandard,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status, with the profile's defaults and without counts (-want +got):\n%s", diff)
	}
}

func TestTheConditionsOfANamespacesPolicy(t *testing.T) {
	governed := map[string]string{v1alpha1.LabelProfile: "production"}
	tests := []struct {
		name    string
		labels  map[string]string
		object  string
		spec    v1alpha1.AgentPolicySpec
		want    []string
		message string
	}{
		{
			name: "rules that tighten join with the profile", labels: governed, object: "default",
			spec: v1alpha1.AgentPolicySpec{Rules: []v1alpha1.Rule{rule("")}},
			want: []string{"Ready=True/Compiled"}, message: "Joined with profile production and ClusterAgentPolicy/default.",
		},
		{
			name: "what is delegated may be set, and strict always", labels: governed, object: "default",
			spec: v1alpha1.AgentPolicySpec{ModelTier: v1alpha1.ModelTierLarge, Initiative: &v1alpha1.Initiative{Mode: v1alpha1.InitiativeModeStrict}},
			want: []string{"Ready=True/Compiled"}, message: "Joined with",
		},
		{
			name: "what is not delegated is named", labels: governed, object: "default",
			spec: v1alpha1.AgentPolicySpec{Initiative: &v1alpha1.Initiative{Mode: v1alpha1.InitiativeModeExploratory}},
			want: []string{"Ready=False/NotDelegated", "Stalled=True/NotDelegated"}, message: "spec.initiative.mode: ClusterAgentPolicy default does not delegate it",
		},
		{
			name: "facts of a tool that is not delegated are named", labels: governed, object: "default",
			spec: v1alpha1.AgentPolicySpec{Catalogue: []v1alpha1.CatalogueEntry{{
				Name: "ledger", Match: v1alpha1.OperationMatch{Tools: []string{"mcp:ledger/*"}}, Facts: v1alpha1.FactSets{Present: []v1alpha1.Fact{v1alpha1.FactReversible}},
			}}},
			want: []string{"Ready=False/NotDelegated", "Stalled=True/NotDelegated"}, message: "spec.catalogue[0].match.tools: ClusterAgentPolicy default does not delegate it",
		},
		{
			name: "a bad expression names rule, line and column", labels: governed, object: "default",
			spec: v1alpha1.AgentPolicySpec{Rules: []v1alpha1.Rule{rule("nothing")}},
			want: []string{"Ready=False/InvalidRule", "Stalled=True/InvalidRule"}, message: "rules[0].when (forbid-ledger-api), line 1, column 1",
		},
		{
			name: "a label that no profile has", labels: map[string]string{v1alpha1.LabelProfile: "nowhere"}, object: "default",
			want: []string{"Ready=False/ProfileMissing"}, message: `Profile "nowhere"`,
		},
		{
			name: "a namespace that nobody governs", object: "default",
			want: []string{"Ready=False/ProfileMissing"}, message: "No ClusterAgentPolicy governs namespace",
		},
		{
			name: "another name than default", labels: governed, object: "extra",
			want: []string{"Ready=False/WrongName", "Stalled=True/WrongName"}, message: "must be named default",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := policy(namespace(t, tt.labels), tt.object, tt.spec)
			if err := k8s.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			got := observe(t, object)
			if diff := cmp.Diff(tt.want, conditions(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Conditions[0].Message, tt.message) {
				t.Errorf("message %q does not say %q", got.Conditions[0].Message, tt.message)
			}
		})
	}
}

// The policy store decides who governs a namespace; a selector alone does not.
func TestALabelledNamespaceOfTheClusterIsGovernedByNobody(t *testing.T) {
	cluster := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kube-", Labels: map[string]string{v1alpha1.LabelProfile: "production"}}}
	if err := k8s.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	object := policy(cluster.Name, "default", v1alpha1.AgentPolicySpec{})
	if err := k8s.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	got := observe(t, object)
	want := "No ClusterAgentPolicy governs namespace " + cluster.Name + ", so nothing here counts."
	if diff := cmp.Diff(want, got.Conditions[0].Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestANamespacesPolicyCountsWhatIsOpen(t *testing.T) {
	payments := namespace(t, map[string]string{v1alpha1.LabelProfile: "production"})
	object := policy(payments, "default", v1alpha1.AgentPolicySpec{ModelTier: v1alpha1.ModelTierLarge, Rules: []v1alpha1.Rule{rule("")}})
	session := &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: payments, Name: "live"},
		Spec: v1alpha1.AgentSessionSpec{
			Identity: v1alpha1.SessionIdentity{Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "agent"},
			UserName: "carla", ModelTier: v1alpha1.ModelTierLarge, InitiativeMode: v1alpha1.InitiativeModeStrict,
			Authority: v1alpha1.Authority{
				Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal},
			},
			DeadlineTime: metav1.NewTime(time.Now().Add(time.Hour)),
		},
	}
	over := session.DeepCopy()
	over.Name, over.Spec.DeadlineTime = "over", metav1.NewTime(time.Now().Add(-time.Hour))
	for _, created := range []client.Object{object, session, over} {
		if err := k8s.Create(t.Context(), created); err != nil {
			t.Fatal(err)
		}
	}
	got := observe(t, object)
	got.Conditions = nil
	want := v1alpha1.AgentPolicyStatus{
		ObservedGeneration: 1, Profile: "production", ModelTier: v1alpha1.ModelTierLarge, InitiativeMode: v1alpha1.InitiativeModeStandard,
		Sessions: new(int32(1)), PendingGrants: new(int32(0)),
		RuleStatuses: []v1alpha1.RuleStatus{{Name: "forbid-ledger-api", CompiledTo: v1alpha1.CompiledToInProcess}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestARunningManagerKeepsThePolicysStatus(t *testing.T) {
	mgr, err := ctrl.NewManager(kubeconfig, ctrl.Options{Scheme: k8s.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	store := &policystore.Store{Reader: mgr.GetClient()}
	for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
		store, &agentpolicy.Status{Client: mgr.GetClient(), Store: store},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})

	object := policy(namespace(t, map[string]string{v1alpha1.LabelProfile: "production"}), "default", v1alpha1.AgentPolicySpec{})
	if err := k8s.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	for generation := int64(1); generation <= 2; generation++ {
		err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
			ready := meta.IsStatusConditionTrue(object.Status.Conditions, string(v1alpha1.ConditionReady))
			return ready && object.Status.ObservedGeneration == generation, err
		})
		if err != nil {
			t.Fatalf("generation %d: %v; status %+v", generation, err, object.Status)
		}
		object.Spec.Rules = []v1alpha1.Rule{rule("")}
		if err := k8s.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
