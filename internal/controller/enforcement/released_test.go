package enforcement_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/controller/enforcement"
)

// releases are the events about released namespaces since the last call.
func (o *operator) releases() []string {
	var found []string
	for {
		select {
		case event := <-o.events.Events:
			if strings.Contains(event, enforcement.EventNamespaceReleased) {
				found = append(found, event)
			}
		default:
			slices.Sort(found)
			return found
		}
	}
}

// Proves K-6: nobody is let go in silence.
func TestALeavingNamespaceIsToldOfOnceAndCounted(t *testing.T) {
	create(t, namespace("leaving", "standard"), namespace("staying", "standard"), profile(), clusterPolicy("default"))
	o := start(t)
	o.step(t)
	release := func(namespaces ...string) {
		t.Helper()
		object := &v1alpha1.ClusterAgentPolicy{}
		if err := k8s.Get(t.Context(), client.ObjectKey{Name: "default"}, object); err != nil {
			t.Fatal(err)
		}
		object.Spec.Governed.Released = nil
		for _, name := range namespaces {
			object.Spec.Governed.Released = append(object.Spec.Governed.Released, v1alpha1.ReleasedNamespace{Namespace: name, Reason: "moved"})
		}
		if err := k8s.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		o.step(t)
	}
	observed := func(what string, counted float64, told ...string) {
		t.Helper()
		want(t, "events "+what, told, o.releases())
		want(t, "gauge "+what, counted, testutil.ToFloat64(o.scope.Releases.Metric))
	}
	observed("before", 0)
	release("leaving")
	observed("while the label still selects an Enforce profile", 0)
	relabel(t, "leaving", "null")
	o.step(t)
	observed("after the release", 1, "Warning NamespaceReleased Nothing enforces namespace leaving any more: it is released, reason: moved")
	o.step(t)
	observed("at the next look", 1)
	relabel(t, "leaving", `"standard"`)
	o.step(t)
	observed("after the label came back", 0)
	release()
	relabel(t, "leaving", "null")
	o.step(t)
	observed("without the entry", 0)
	want(t, "the scope", true, slices.Contains(inForce(t).Namespaces, "leaving"))
}
