// Package onboarding_test has agents with cluster-admin work in namespaces under a profile that only audits: nothing is
// refused, whatever the manager does, and the report says what would have been. The control plane and the manager are real.
package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

const (
	// audits is the profile that only audits.
	audits = "onboarding"
	// waitAtMost bounds every wait for what the manager or a controller does by itself; a report is written every 30 s.
	waitAtMost = 90 * time.Second
)

var shared *cluster.Cluster

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/onboarding:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard())
	if shared, err = cluster.Start(ctx, nil); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if err := bindOnboarding(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// bindOnboarding binds the profile that only audits, adds a rule, and exempts one ServiceAccount of namespace exempted.
func bindOnboarding(ctx context.Context) error {
	object := &v1alpha1.ClusterAgentPolicy{}
	if err := shared.Admin.Get(ctx, client.ObjectKey{Name: "default"}, object); err != nil {
		return err
	}
	before := object.DeepCopy()
	object.Spec.Profiles = append(object.Spec.Profiles, v1alpha1.ProfileBinding{
		Name: audits, AgentPolicyName: cluster.Profile, FloorEnforcement: v1alpha1.FloorEnforcementAudit,
	})
	object.Spec.Rules = append(object.Spec.Rules, v1alpha1.Rule{
		Name: "forbid-leases", Class: v1alpha1.RuleClassForbidden, Enforcement: v1alpha1.EnforcementEnforce,
		Detail: "Leader election belongs to controllers.",
		Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate},
		}}},
	})
	object.Spec.Governed.ExemptServiceAccounts = []v1alpha1.ExemptServiceAccount{{
		ServiceAccountReference: v1alpha1.ServiceAccountReference{Namespace: "bystanders", Name: "controller"}, Reason: "Not an agent.",
	}}
	return shared.Admin.Patch(ctx, object, client.MergeFrom(before))
}

func homeUnder(t *testing.T, namespace, profile string) *cluster.Home {
	t.Helper()
	home, err := shared.HomeUnder(t.Context(), namespace, profile)
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func must(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := shared.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually calls done until it answers nil.
func eventually(t *testing.T, done func() error) {
	t.Helper()
	deadline := time.Now().Add(waitAtMost)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("within %s: %v", waitAtMost, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func counter(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	value, err := shared.Manager.Counter(t.Context(), name, labels)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// reviews is how many reviews an entry has answered since the manager started.
func reviews(t *testing.T, entry string) float64 {
	t.Helper()
	return counter(t, "stepbeyond_admission_reviews_total", map[string]string{"entry": entry})
}

func status(ctx context.Context) (v1alpha1.ClusterAgentPolicyStatus, error) {
	var object v1alpha1.ClusterAgentPolicy
	err := shared.Admin.Get(ctx, client.ObjectKey{Name: "default"}, &object)
	return object.Status, err
}

// reported is what the report says about a ServiceAccount.
func reported(ctx context.Context, namespace, name string) (v1alpha1.OnboardingServiceAccount, error) {
	s, err := status(ctx)
	if err != nil {
		return v1alpha1.OnboardingServiceAccount{}, err
	}
	if s.Onboarding != nil {
		of := func(a v1alpha1.OnboardingServiceAccount) bool { return a.Namespace == namespace && a.Name == name }
		if i := slices.IndexFunc(s.Onboarding.ServiceAccounts, of); i >= 0 {
			return s.Onboarding.ServiceAccounts[i], nil
		}
	}
	return v1alpha1.OnboardingServiceAccount{}, fmt.Errorf("%s/%s is not in the report %+v", namespace, name, s.Onboarding)
}

func session(ctx context.Context, namespace string) (v1alpha1.AgentSessionStatus, error) {
	var list v1alpha1.AgentSessionList
	if err := shared.Admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return v1alpha1.AgentSessionStatus{}, err
	}
	if len(list.Items) != 1 {
		return v1alpha1.AgentSessionStatus{}, fmt.Errorf("%d sessions in %s", len(list.Items), namespace)
	}
	return list.Items[0].Status, nil
}
