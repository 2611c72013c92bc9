package policystore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// reader serves the objects of an input as an API server would; err is what it answers instead.
type reader struct {
	in  policystore.Input
	err error
}

func (r *reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	switch into := into.(type) {
	case *corev1.Namespace:
		for i := range r.in.Namespaces {
			if object := &r.in.Namespaces[i]; object.Name == key.Name {
				object.DeepCopyInto(into)
				return nil
			}
		}
	case *v1alpha1.AgentPolicy:
		for i := range r.in.Policies {
			if object := &r.in.Policies[i]; client.ObjectKeyFromObject(object) == key {
				object.DeepCopyInto(into)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (r *reader) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if r.err != nil {
		return r.err
	}
	switch into := into.(type) {
	case *v1alpha1.ClusterAgentPolicyList:
		for i := range r.in.Cluster {
			into.Items = append(into.Items, *r.in.Cluster[i].DeepCopy())
		}
	case *v1alpha1.AgentPolicyList:
		for i := range r.in.Policies {
			into.Items = append(into.Items, *r.in.Policies[i].DeepCopy())
		}
	case *corev1.NamespaceList:
		for i := range r.in.Namespaces {
			into.Items = append(into.Items, *r.in.Namespaces[i].DeepCopy())
		}
	}
	return nil
}

func rebuild(t *testing.T, store *policystore.Store) *policystore.Snapshot {
	t.Helper()
	if err := store.Rebuild(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	return store.Current()
}

// Proves F-1: nothing is loaded until the first snapshot is whole, and a failed one leaves the last in force.
func TestAStoreIsReadyOnceItHasASnapshot(t *testing.T) {
	server := &reader{in: input(), err: errors.New("the API server is away")}
	store := &policystore.Store{Reader: server}
	if err := store.Rebuild(t.Context(), now); err == nil || !strings.Contains(err.Error(), "the API server is away") {
		t.Errorf("rebuild without an API server: %v", err)
	}
	if store.Current() != nil || !errors.Is(store.Ready(nil), policystore.ErrNotLoaded) {
		t.Error("a store without a snapshot has one, or is ready")
	}
	server.err = nil
	first := rebuild(t, store)
	if err := store.Ready(nil); err != nil {
		t.Errorf("ready: %v", err)
	}
	server.err = errors.New("the API server is away")
	if err := store.Rebuild(t.Context(), now); err == nil || store.Current() != first {
		t.Errorf("a failed rebuild (%v) replaces the snapshot", err)
	}
}

func TestEveryListenerHearsOfTheLastChange(t *testing.T) {
	server := &reader{in: input()}
	store := &policystore.Store{Reader: server}
	one, two := store.Changed(), store.Changed()
	rebuild(t, store)
	server.in.Cluster[0].Generation++
	rebuild(t, store)
	for _, listener := range []<-chan struct{}{one, two} {
		if len(listener) != 1 {
			t.Errorf("%d notices wait, want one", len(listener))
		}
		<-listener
	}
	server.in.Namespaces = append(server.in.Namespaces, namespace("search", ""))
	rebuild(t, store)
	if len(one) != 0 {
		t.Error("a listener is told of a rebuild that changed nothing, or of a namespace that nobody governs")
	}
	server.in.Namespaces[2] = namespace("search", "standard")
	rebuild(t, store)
	if len(one) != 1 {
		t.Error("a listener is not told of a namespace that joins")
	}
	<-one
	server.in.Cluster[0].Generation++
	rebuild(t, store)
	if len(one) != 1 {
		t.Error("a listener that has read is not told of the next change")
	}
}

// Proves F-1: an invalid object keeps its last valid generation in force, and its problems are named.
func TestAnInvalidObjectKeepsItsLastValidGeneration(t *testing.T) {
	forbid := forbidding("forbid")
	for name, breakIt := range map[string]func(in *policystore.Input) (fix func()){
		"a cluster policy": func(in *policystore.Input) func() {
			object := &in.Cluster[0]
			object.Spec.Rules, object.Generation = []v1alpha1.Rule{broken}, 2
			return func() { object.Spec.Rules, object.Generation = nil, 3 }
		},
		"a profile": func(in *policystore.Input) func() {
			object := &in.Policies[0]
			object.Spec.Rules, object.Generation = []v1alpha1.Rule{broken}, 2
			return func() { object.Spec.Rules, object.Generation = nil, 3 }
		},
		"a namespace's own policy": func(in *policystore.Input) func() {
			object := &in.Policies[1]
			object.Spec.Rules, object.Generation = []v1alpha1.Rule{broken}, 2
			return func() { object.Spec.Rules, object.Generation = nil, 3 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.Policies = append(in.Policies, agentPolicy("checkout", "default"))
			in.Cluster[0].Spec.Rules = []v1alpha1.Rule{forbid}
			in.Policies[0].Spec.Rules = []v1alpha1.Rule{forbid}
			in.Policies[1].Spec.Rules = []v1alpha1.Rule{forbid}
			server := &reader{in: in}
			store := &policystore.Store{Reader: server}
			whole := rebuild(t, store)
			before := answer(whole)
			_, identity := whole.Engine.Identity("checkout", "checkout")
			if before.Class != policy.ClassForbidden || len(before.Details) != 3 {
				t.Fatalf("answer %s for %+v, want FORBIDDEN by three rules", before.Class, before.Details)
			}
			fix := breakIt(&server.in)
			// Also after more than one rebuild, and with a problem that names the place.
			for range 3 {
				snapshot := rebuild(t, store)
				after := answer(snapshot)
				if _, now := snapshot.Engine.Identity("checkout", "checkout"); len(after.Details) != 3 || now != identity {
					t.Fatalf("answer %s for %+v, want all of the last valid generation", after.Class, after.Details)
				}
				problems := append(append(snapshot.Problems("uid-default"), snapshot.Problems("uid-stepbeyond-system-standard")...), snapshot.Problems("uid-checkout-default")...)
				if len(problems) != 1 || problems[0].Rule != "broken" || problems[0].Line != 1 {
					t.Fatalf("problems are %v, want the one of the broken rule", problems)
				}
			}
			fix()
			snapshot := rebuild(t, store)
			_, repaired := snapshot.Engine.Identity("checkout", "checkout")
			if d := answer(snapshot); len(d.Details) != 2 || repaired == identity {
				t.Errorf("answer %s for %+v, want the next valid generation in force", d.Class, d.Details)
			}
		})
	}
}

func TestAnObjectMadeAnewHasNoLastValidGeneration(t *testing.T) {
	server := &reader{in: input()}
	store := &policystore.Store{Reader: server}
	rebuild(t, store)
	server.in.Policies[0].UID, server.in.Policies[0].Spec.Rules = "uid-anew", []v1alpha1.Rule{broken}
	if d := answer(rebuild(t, store)); d.Reason != policy.ReasonPolicyMissing {
		t.Errorf("answer %s %s, want PolicyMissing: another object's generation is not this one's", d.Verdict, d.Reason)
	}
}

func TestADeletedObjectIsGone(t *testing.T) {
	server := &reader{in: input()}
	server.in.Cluster[0].Spec.Rules = []v1alpha1.Rule{forbidding("forbid")}
	second := clusterPolicy("second", "other")
	second.Spec.Rules = server.in.Cluster[0].Spec.Rules
	server.in.Cluster = append(server.in.Cluster, second)
	store := &policystore.Store{Reader: server}
	rebuild(t, store)
	server.in.Cluster = server.in.Cluster[:1]
	if d := answer(rebuild(t, store)); len(d.Details) != 1 || d.Details[0].Rule != "default/forbid" {
		t.Errorf("reasons %+v, want only that of the policy that is left", d.Details)
	}
}

// Proves G-2 and G-8 for a snapshot: it is current only while the API server has the very same generations.
func TestASnapshotIsCurrentWhileNothingChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*policystore.Input)
		want   bool
	}{
		"nothing": {func(*policystore.Input) {}, true},
		"another namespace": {func(in *policystore.Input) {
			in.Namespaces[1].Labels = map[string]string{v1alpha1.LabelProfile: "standard"}
		}, true},
		"another namespace's policy":   {func(in *policystore.Input) { in.Policies = append(in.Policies, agentPolicy("elsewhere", "default")) }, true},
		"the cluster policy's spec":    {func(in *policystore.Input) { in.Cluster[0].Generation++ }, false},
		"a cluster policy made anew":   {func(in *policystore.Input) { in.Cluster[0].UID = "anew" }, false},
		"one more cluster policy":      {func(in *policystore.Input) { in.Cluster = append(in.Cluster, clusterPolicy("second")) }, false},
		"one cluster policy less":      {func(in *policystore.Input) { in.Cluster = nil }, false},
		"the profile's spec":           {func(in *policystore.Input) { in.Policies[0].Generation++ }, false},
		"the profile made anew":        {func(in *policystore.Input) { in.Policies[0].UID = "anew" }, false},
		"the profile deleted":          {func(in *policystore.Input) { in.Policies = nil }, false},
		"the namespace's first policy": {func(in *policystore.Input) { in.Policies = append(in.Policies, agentPolicy("checkout", "default")) }, false},
		"the namespace's label":        {func(in *policystore.Input) { in.Namespaces[0].Labels[v1alpha1.LabelProfile] = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := &reader{in: input()}
			store := &policystore.Store{Reader: server}
			snapshot := rebuild(t, store)
			test.change(&server.in)
			got, err := snapshot.Current(t.Context(), server, "checkout", "")
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("current = %v, want %v", got, test.want)
			}
		})
	}
	t.Run("an API server that does not answer is an error", func(t *testing.T) {
		server := &reader{in: input()}
		snapshot := rebuild(t, &policystore.Store{Reader: server})
		server.err = errors.New("away")
		if current, err := snapshot.Current(t.Context(), server, "checkout"); err == nil || current {
			t.Errorf("current = %v, %v; want an error", current, err)
		}
	})
	t.Run("a namespace that is gone is an error", func(t *testing.T) {
		server := &reader{in: input()}
		snapshot := rebuild(t, &policystore.Store{Reader: server})
		server.in.Namespaces = nil
		if current, err := snapshot.Current(t.Context(), server, "checkout"); err == nil || current {
			t.Errorf("current = %v, %v; want an error", current, err)
		}
	})
}
