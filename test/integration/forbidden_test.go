package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const floorForbidden = "stepbeyond-floor-forbidden"

// ledgerPolicy governs nobody and forbids two things everywhere: one that admission can tell, one that needs the origin.
func ledgerPolicy() *v1alpha1.ClusterAgentPolicy {
	configMaps := func(verb v1alpha1.Verb, name string, origins ...v1alpha1.Origin) v1alpha1.OperationMatch {
		return v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{name}, Verbs: []v1alpha1.Verb{verb}, Origins: origins,
		}}}
	}
	return &v1alpha1.ClusterAgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-ledger"},
		Spec: v1alpha1.ClusterAgentPolicySpec{
			BaselineVersion: "v1",
			Governed:        v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"acme.example/nobody": "here"}}},
			Rules: []v1alpha1.Rule{
				{
					Name: "closed-ledger", Class: v1alpha1.RuleClassForbidden, Match: configMaps(v1alpha1.VerbCreate, "ledger-*"),
					When: `object.?data.?mode.orValue("") != "test"`, Detail: "The ledger is closed.", Recovery: "Ask the accountants.",
				},
				{
					Name: "foreign-books", Class: v1alpha1.RuleClassForbidden,
					Match: configMaps(v1alpha1.VerbDelete, "book-*", v1alpha1.OriginUnknown, v1alpha1.OriginPerson),
				},
			},
		},
	}
}

// Proves K-6, K-2, F-1 and C-3: what a cluster policy forbids and admission can tell stays forbidden without the manager;
// what only the manager can tell fails closed; who is not governed notices neither.
func TestWhatAClusterPolicyForbidsStaysForbiddenWithoutTheManager(t *testing.T) {
	const ns = "forbidden"
	h := at(t, ns)
	ledger, trial, book := configMap(ns, "ledger-1"), configMap(ns, "ledger-2"), configMap(ns, "book-1")
	trial.Data = map[string]string{"mode": "test"}
	must(t, book)
	if got := h.agent.try(t, create(configMap(ns, "ledger-0"))); got.outcome != allowed("AUTO", "Allowed") {
		t.Fatalf("before the policy: %+v %s", got.outcome, got.message)
	}
	object := ledgerPolicy()
	must(t, object)
	eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if diff := cmp.Diff([]v1alpha1.RuleStatus{
			{Name: "closed-ledger", CompiledTo: v1alpha1.CompiledToAdmissionPolicy},
			{Name: "foreign-books", CompiledTo: v1alpha1.CompiledToInProcess, Reason: v1alpha1.InProcessReadsOrigin,
				Message: "match.kubernetes[0].origins: only the manager knows the origin of a target."},
		}, object.Status.RuleStatuses); diff != "" {
			return fmt.Errorf("ruleStatuses (-want +got):\n%s", diff)
		}
		return nil
	})
	closed := func(when string) {
		t.Helper()
		got := h.agent.try(t, create(ledger))
		if diff := cmp.Diff(byFloor(floorForbidden), got.outcome); diff != "" {
			t.Errorf("%s (-want +got):\n%s%s", when, diff, got.message)
		}
		expectSentence(t, got.message, "Forbidden: create configmaps forbidden/ledger-1 is closed to agents and no approval opens it "+
			"(rule zz-ledger/closed-ledger: The ledger is closed). Next: Ask the accountants. [floor v1]")
	}
	eventually(t, func() error {
		if got := h.agent.try(t, create(ledger, client.DryRunAll)); got.By != floorForbidden {
			return fmt.Errorf("%+v %s", got.outcome, got.message)
		}
		return nil
	})
	closed("with the manager")
	if got := h.agent.try(t, create(trial)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("what the expression spares: %+v %s", got.outcome, got.message)
	}
	if got := h.agent.try(t, remove(book)); got.outcome != denied("FORBIDDEN", "Forbidden", "Forbidden") {
		t.Errorf("in process: %+v %s", got.outcome, got.message)
	}
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manager.Start(); err != nil && !strings.Contains(err.Error(), "runs already") {
			t.Error(err)
		}
	})
	closed("with the manager killed")
	if got := h.agent.try(t, remove(book)); got.Code != 500 || !strings.Contains(got.message, `failed calling webhook "`+enforcer+`"`) {
		t.Errorf("in process with the manager killed: %+v %s", got.outcome, got.message)
	}
	bystanderPasses(t, ledger, book)

	startManager(t)
	if err := admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	// Another valid policy is left, so it is known that nobody forbids it any more.
	eventually(t, func() error {
		if got := h.agent.try(t, create(ledger, client.DryRunAll)); got.err != nil {
			return got.err
		}
		return nil
	})
}

func bystanderPasses(t *testing.T, ledger, book *corev1.ConfigMap) {
	t.Helper()
	twin := ledger.DeepCopy()
	for _, err := range []error{ben.Create(t.Context(), twin), ben.Delete(t.Context(), twin), ben.Delete(t.Context(), book, client.DryRunAll)} {
		if err != nil {
			t.Errorf("a bystander: %v", err)
		}
	}
}
