package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/policy"
)

// discovered is a small cluster.
func discovered() *kinds {
	k := newKinds([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", SingularName: "pod", Kind: "Pod", ShortNames: []string{"po"}}, {Name: "pods/exec", Kind: "PodExecOptions"},
			{Name: "services", SingularName: "service", Kind: "Service", ShortNames: []string{"svc"}}, {Name: "nodes", SingularName: "node", Kind: "Node"},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", SingularName: "deployment", Kind: "Deployment", ShortNames: []string{"deploy"}}, {Name: "deployments/scale", Kind: "Scale"},
		}},
	})
	k.unknown["broken.example"] = true
	return k
}

func TestWhatASelectorCanMatch(t *testing.T) {
	in := func(group string, resources ...string) policy.KubernetesSelector {
		return policy.KubernetesSelector{Groups: []string{group}, Resources: resources}
	}
	verbs := func(s policy.KubernetesSelector, verbs ...policy.Verb) policy.KubernetesSelector {
		s.Verbs = verbs
		return s
	}
	for _, tt := range []struct {
		name string
		from policy.KubernetesSelector
		want reading
	}{
		{"a resource that is there", in("apps", "deployments"), reading{}},
		{"a subresource that is there", in("apps", "deployments/scale"), reading{}},
		{"any subresource of a resource that has one", in("", "pods/*"), reading{}},
		{"everything", in("*", "*"), reading{}},
		{"no group and no resource are any", policy.KubernetesSelector{}, reading{}},
		{"a resource of any group", in("*", "deployments"), reading{}},
		{"a group that nobody serves", in("gateway.networking.k8s.io", "*"), reading{dead: true, why: "no API server has group gateway.networking.k8s.io"}},
		{"a singular", in("apps", "deployment"), reading{dead: true, why: "no API server has deployment (did you mean deployments?) in group apps", missing: []string{"deployment"}}},
		{"a short name among others", in("apps", "deployments", "deploy/scale"), reading{missing: []string{"deploy/scale"}}},
		{"the wrong group", in("apps", "services"), reading{dead: true, why: "no API server has services in group apps", missing: []string{"services"}}},
		{"a subresource that is not there", in("", "services/*"), reading{dead: true, why: "no API server has services/* in the core group", missing: []string{"services/*"}}},
		{"a group that could not be discovered", in("broken.example", "things"), reading{}},
		{"any group while one could not be discovered", in("*", "things"), reading{}},
		{"what only an authorizer hears of", in("", "nodes/metrics", "nonresourceurls"), reading{}},
		{"connecting to what is not connected to", verbs(in("", "pods"), policy.VerbConnect), reading{dead: true,
			why: "nobody connects to pods; what is connected to are pods/exec, pods/attach, pods/portforward, pods/proxy and the like"}},
		{"connecting among other verbs", verbs(in("", "pods"), policy.VerbConnect, policy.VerbDelete), reading{}},
		{"connecting to anything", verbs(in("*", "*"), policy.VerbConnect), reading{}},
		{"creating an exec", verbs(in("", "pods/exec"), policy.VerbCreate), reading{dead: true, why: "admission calls every request to pods/exec connect"}},
		{"reading an exec", verbs(in("", "pods/exec"), policy.VerbRead), reading{}},
		{"creating an exec or a pod", verbs(in("", "pods/exec", "pods"), policy.VerbCreate), reading{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, read(&tt.from, discovered()), cmp.AllowUnexported(reading{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Without a cluster nothing is said about what it has.
func TestWithoutDiscoveryOnlyVerbsAreJudged(t *testing.T) {
	unknown := policy.KubernetesSelector{Groups: []string{"apps"}, Resources: []string{"deployment"}}
	if got := read(&unknown, nil); got.dead || got.missing != nil {
		t.Errorf("got %+v", got)
	}
}
