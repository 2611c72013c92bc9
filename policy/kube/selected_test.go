package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

func TestWhatARequestsLabelsAndSelectorsReach(t *testing.T) {
	const (
		labelled   = `{"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"containers":[]}}`
		relabelled = `{"metadata":{"name":"a","labels":{"app":"other"}},"spec":{"containers":[]}}`
		owned      = `{"metadata":{"name":"a","labels":{"app":"web"},"ownerReferences":[{"kind":"ReplicaSet","name":"r","controller":true}]},"spec":{}}`
		workload   = `{"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[]}}}}`
		resized    = `{"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[]}}}}`
		plain      = `{"spec":{"selector":{"app":"web"},"template":{"metadata":{"labels":{"app":"web"}}}}}`
	)
	web := []map[string]string{{"app": "web"}}
	selector := map[string]any{"matchLabels": map[string]any{"app": "web"}}
	for name, tt := range map[string]struct {
		what, object, old string
		want              kube.Selection
	}{
		"a Pod":                                {"CREATE pods", labelled, "", kube.Selection{Labels: web, Bare: true}},
		"a Pod without labels":                 {"CREATE pods", `{"metadata":{"name":"a"}}`, "", kube.Selection{}},
		"a Pod of a controller":                {"CREATE pods", owned, "", kube.Selection{Labels: web}},
		"a Pod with other labels":              {"UPDATE pods", labelled, relabelled, kube.Selection{Labels: web, Bare: true}},
		"a Pod with the same labels":           {"UPDATE pods", labelled, labelled, kube.Selection{}},
		"the status of a Pod":                  {"UPDATE pods/status", labelled, relabelled, kube.Selection{}},
		"the deletion of a Pod":                {"DELETE pods", "", labelled, kube.Selection{}},
		"a Deployment":                         {"CREATE apps/deployments", workload, "", kube.Selection{Labels: web, Orphans: "replicasets", Selector: selector}},
		"a StatefulSet":                        {"CREATE apps/statefulsets", workload, "", kube.Selection{Labels: web, Orphans: "pods", Selector: selector}},
		"a Job, which selects what it made":    {"CREATE batch/jobs", workload, "", kube.Selection{Labels: web}},
		"a ReplicationController":              {"CREATE replicationcontrollers", plain, "", kube.Selection{Labels: web, Orphans: "pods", Selector: selector}},
		"more replicas":                        {"UPDATE apps/deployments", resized, workload, kube.Selection{}},
		"a PodTemplate, of which nobody makes": {"CREATE podtemplates", `{"template":{"metadata":{"labels":{"app":"web"}}}}`, "", kube.Selection{}},
		"a custom resource with a pod":         {"CREATE acme.example/widgets", `{"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"a:1"}]}}}}`, "", kube.Selection{Labels: web}},
		"a ConfigMap":                          {"CREATE configmaps", `{"metadata":{"labels":{"app":"web"}}}`, "", kube.Selection{}},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, tt.what, tt.object, tt.old)
			if diff := cmp.Diff(tt.want, kube.SelectionOf(&req)); diff != "" {
				t.Errorf("selection (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves C-2.
func TestLabelsAndSelectorsThatReachForeignObjectsAsk(t *testing.T) {
	reaching := func(change func(*kube.Known)) func() kube.Known {
		return func() kube.Known {
			known := own()
			change(&known)
			return known
		}
	}
	runFacts(t, []factCase{
		{name: "pods of a foreign Service", what: "CREATE pods", object: `{}`, known: reaching(func(k *kube.Known) { k.Serves = true }), want: "Security=Present"},
		{name: "a Pod that a foreign controller takes", what: "CREATE pods", object: `{}`, known: reaching(func(k *kube.Known) { k.Adopted = true }), want: "Destructive=Present"},
		{name: "a workload that takes foreign pods", what: "CREATE apps/statefulsets", object: `{}`, known: reaching(func(k *kube.Known) { k.Adopts = true }), want: "Destructive=Present"},
		{name: "none of it", what: "CREATE apps/statefulsets", object: `{}`, known: own},
	})
}
