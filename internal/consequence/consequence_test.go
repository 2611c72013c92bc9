package consequence

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var fields map[string]any
	if err := utiljson.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return fields
}

// what spells a request as "UPDATE apps/deployments scale"; it is about checkout/web.
func request(t *testing.T, what, object, old string) *kube.Request {
	t.Helper()
	operation, rest, _ := strings.Cut(what, " ")
	resource, subresource, _ := strings.Cut(rest, " ")
	group := ""
	if g, r, grouped := strings.Cut(resource, "/"); grouped {
		group, resource = g, r
	}
	return &kube.Request{
		Operation: operation, Group: group, Version: "v1", Resource: resource, Subresource: subresource,
		Namespace: "checkout", Name: "web", Object: decode(t, object), OldObject: decode(t, old),
	}
}

// world is what the API server has.
func world(t *testing.T, objects ...string) client.WithWatch {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for _, text := range objects {
		fields := decode(t, text)
		u := &unstructured.Unstructured{Object: fields}
		if u.GetKind() != "PersistentVolume" && u.GetNamespace() == "" {
			u.SetNamespace("checkout")
		}
		builder = builder.WithObjects(u)
	}
	return builder.Build()
}

func pod(name, labels, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":%s},"spec":%s,"status":{"phase":"Running"}}`, name, labels, spec)
}

const (
	volume     = `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv-1"},"spec":{"capacity":{"storage":"20Gi"},"persistentVolumeReclaimPolicy":%q}}`
	boundClaim = `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"web","namespace":"checkout"},"spec":{"volumeName":"pv-1"}}`
	mountsWeb  = `{"containers":[],"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"web"}}]}`
	readsWeb   = `{"containers":[{"name":"main","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"web","key":"a"}}}]}],"volumes":[{"name":"v","configMap":{"name":"web"}}]}`
)

func serviceOf(spec string) string {
	return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"checkout"},"spec":` + spec + `}`
}

func workload(kind, spec string) string {
	return `{"apiVersion":"apps/v1","kind":"` + kind + `","metadata":{"name":"web","namespace":"checkout"},"spec":` + spec + `,"status":{"readyReplicas":3,"numberReady":4}}`
}

const againFromManifest = "make it again from its manifest, in Git or a backup; its uid, status and history do not come back"

func TestWhatFollowsAndHowToTakeItBackAreTold(t *testing.T) {
	endpoints := `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"web"},"subsets":[{"addresses":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}]}`
	ingress := func(host string) string {
		return `{"metadata":{"name":"web"},"spec":{"rules":[{"host":"` + host + `","http":{"paths":[{"backend":{"service":{"name":"shop"}}},{"backend":{"service":{"name":"shop"}}}]}}]}}`
	}
	cases := []struct {
		name, what, object, old, options string
		world                            []string
		stored                           string
		change                           []string
		effects, undo                    []string
	}{
		{
			name: "a claim whose volume goes with it", what: "DELETE persistentvolumeclaims", old: boundClaim,
			world:   []string{fmt.Sprintf(volume, "Delete"), pod("db-0", `{}`, mountsWeb), pod("other", `{}`, `{"containers":[]}`)},
			effects: []string{"used by 1 Pod: db-0; the deletion waits until no Pod uses it", "PersistentVolume pv-1 has reclaimPolicy Delete: its 20Gi are destroyed"},
			undo:    []string{"none for the data, unless there is a snapshot or a backup"},
		},
		{
			name: "a claim whose volume stays", what: "DELETE persistentvolumeclaims", old: boundClaim, world: []string{fmt.Sprintf(volume, "Retain")},
			effects: []string{"no Pod uses it now", "PersistentVolume pv-1 has reclaimPolicy Retain: its 20Gi stay"},
			undo:    []string{"make the claim again; a person who manages volumes binds pv-1 to it"},
		},
		{
			name: "a claim without a volume", what: "DELETE persistentvolumeclaims", old: `{"metadata":{"name":"web"},"spec":{}}`,
			effects: []string{"no Pod uses it now", "it is bound to no volume, so no data are lost"}, undo: []string{"make it again from its manifest"},
		},
		{
			name: "a claim whose volume is not there", what: "DELETE persistentvolumeclaims", old: boundClaim,
			effects: []string{"no Pod uses it now", "PersistentVolume pv-1 does not exist"}, undo: []string{"not known, because the volume could not be seen: count on none"},
		},
		{
			name: "a Namespace", what: "DELETE namespaces", old: `{"metadata":{"name":"web"}}`,
			world:   []string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"web"}}`, pod("b", `{}`, `{}`)},
			effects: []string{"everything in the namespace is deleted with it, data too", "in it now: 1 Pod: a"}, undo: []string{"none: a namespace of that name can be made again, empty"},
		},
		{
			name: "a Deployment", what: "DELETE apps/deployments", old: workload("Deployment", `{"replicas":3}`),
			effects: []string{"its Pods (3 ready) are deleted with it"}, undo: []string{againFromManifest},
		},
		{
			name: "a DaemonSet that leaves its Pods", what: "DELETE apps/daemonsets", old: workload("DaemonSet", `{}`), options: `{"propagationPolicy":"Orphan"}`,
			effects: []string{"its Pods (4 ready) stay, and nobody replaces them when they end"}, undo: []string{againFromManifest},
		},
		{
			name: "a StatefulSet with its claims", what: "DELETE apps/statefulsets", old: workload("StatefulSet", `{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}`),
			effects: []string{"its Pods (3 ready) are deleted with it", "its claims are deleted too, and their data as their volumes' reclaimPolicy says"},
			undo:    []string{"none for data on volumes with reclaimPolicy Delete", againFromManifest},
		},
		{
			name: "a StatefulSet without its claims", what: "DELETE apps/statefulsets", old: workload("StatefulSet", `{"volumeClaimTemplates":[{}]}`),
			effects: []string{"its Pods (3 ready) are deleted with it", "its claims stay, with their data"}, undo: []string{againFromManifest},
		},
		{
			name: "a ReplicaSet of a Deployment", what: "DELETE apps/replicasets",
			old:     `{"kind":"ReplicaSet","metadata":{"name":"web","ownerReferences":[{"kind":"Deployment","name":"web","controller":true}]},"status":{"readyReplicas":1}}`,
			effects: []string{"its Pods (1 ready) are deleted with it", "Deployment web controls it, and makes another when it still wants one"}, undo: []string{againFromManifest},
		},
		{
			name: "a Pod of nobody", what: "DELETE pods", old: `{"metadata":{"name":"web"}}`,
			effects: []string{"no controller makes it again"}, undo: []string{"make it again from its manifest; what it held in memory and in its own file system is lost"},
		},
		{
			name: "an evicted Pod of a StatefulSet", what: "CREATE pods eviction", object: `{"kind":"Eviction"}`,
			stored:  `{"metadata":{"name":"web","ownerReferences":[{"kind":"StatefulSet","name":"db","controller":true}]}}`,
			effects: []string{"StatefulSet db controls it, and makes another when it still wants one"}, undo: []string{"not needed for the Pod; what it held in memory and in its own file system is lost"},
		},
		{
			name: "a Job", what: "DELETE batch/jobs", old: `{"metadata":{"name":"web"},"status":{"active":2}}`,
			effects: []string{"its Pods (2 active) are deleted with it, with their logs"}, undo: []string{againFromManifest},
		},
		{
			name: "a CronJob", what: "DELETE batch/cronjobs", old: `{"metadata":{"name":"web"}}`,
			effects: []string{"its Jobs and their Pods are deleted with it; nothing runs on its schedule any more"}, undo: []string{againFromManifest},
		},
		{
			name: "a Service with an address", what: "DELETE services", world: []string{endpoints},
			old:     `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}`,
			effects: []string{"until now it leads to 2 ready addresses; clients that use it reach nothing any more", "the external address 192.0.2.7 is given up and may not come back"},
			undo:    []string{againFromManifest},
		},
		{
			name: "a kind that nobody knows", what: "DELETE acme.example/widgets", old: `{"metadata":{"name":"web"}}`, undo: []string{againFromManifest},
		},
		{
			name: "a scale to nothing", what: "UPDATE apps/deployments scale", object: `{"kind":"Scale","spec":{}}`, old: `{"kind":"Scale","spec":{"replicas":3}}`,
			stored: workload("Deployment", `{"replicas":3}`), change: []string{"spec.replicas: 3 -> 0"},
			effects: []string{"all its Pods (3 ready) are stopped: nothing of it is left to serve"}, undo: []string{"put back the old values that stand under change"},
		},
		{
			name: "fewer replicas that take their claims along", what: "UPDATE apps/statefulsets",
			object:  workload("StatefulSet", `{"replicas":1,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}`),
			old:     workload("StatefulSet", `{"replicas":3,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}`),
			effects: []string{"2 of 3 Pods are stopped (3 ready now)", "the claims of the Pods that go are deleted too, and their data as their volumes' reclaimPolicy says"},
			undo:    []string{"none for data on volumes with reclaimPolicy Delete", "put back the old values that stand under change"},
		},
		{
			name: "more replicas", what: "UPDATE apps/deployments", object: workload("Deployment", `{"replicas":5}`), old: workload("Deployment", `{"replicas":3}`),
			effects: []string{"2 more Pods are started, with what they use"}, undo: []string{"put back the old values that stand under change"},
		},
		{
			name: "another template", what: "UPDATE apps/deployments", object: workload("Deployment", `{"strategy":{"type":"Recreate"},"template":{"a":1}}`), old: workload("Deployment", `{"template":{"a":2}}`),
			change: []string{"spec.template.a: v1:12345678 -> v1:87654321"}, effects: []string{"all its Pods (3 ready) stop before new ones start"},
			undo: []string{"kubectl -n checkout rollout undo deployments/web, while the earlier revision is kept", "put back the old values; those that change shows as v1: are not kept here: take them from Git or a backup"},
		},
		{
			name: "another template of a DaemonSet", what: "UPDATE apps/daemonsets", object: workload("DaemonSet", `{"updateStrategy":{"type":"OnDelete"},"template":{"a":1}}`), old: workload("DaemonSet", `{"template":{"a":2}}`),
			effects: []string{"its Pods (4 ready) follow the new template when they are deleted"},
			undo:    []string{"kubectl -n checkout rollout undo daemonsets/web, while the earlier revision is kept", "put back the old values that stand under change"},
		},
		{
			name: "the last finalizer of what is being deleted", what: "UPDATE acme.example/widgets", object: `{"metadata":{"name":"web"}}`, old: `{"metadata":{"name":"web","finalizers":["a/b"],"deletionTimestamp":"2026-12-01T10:00:00Z"}}`,
			change: []string{"metadata.finalizers[0]: v1:12345678 -> (none)"}, effects: []string{"the object is being deleted, and is gone when its last finalizer goes"}, undo: []string{"none once it is gone"},
		},
		{
			name: "a Service that leads elsewhere", what: "UPDATE services", world: []string{endpoints, pod("new-0", `{"app":"new"}`, `{}`), pod("old-0", `{"app":"old"}`, `{}`)},
			object: serviceOf(`{"selector":{"app":"new"}}`), old: serviceOf(`{"selector":{"app":"old"}}`),
			effects: []string{"until now it leads to 2 ready addresses; clients of the Service are led elsewhere", "its selector finds 1 Pod: new-0"}, undo: []string{"put back the old values that stand under change"},
		},
		{
			name: "a Service that is opened", what: "UPDATE services", object: serviceOf(`{"type":"LoadBalancer","loadBalancerSourceRanges":["198.51.100.0/24"],"ports":[{"protocol":"TCP","targetPort":8080}],"externalIPs":["203.0.113.1"]}`), old: serviceOf(`{"type":"ClusterIP"}`),
			effects: []string{"a load balancer opens its ports (TCP 8080) to clients outside of the cluster (198.51.100.0/24)", "traffic to 203.0.113.1 is taken by the Service"}, undo: []string{"put back the old values that stand under change"},
		},
		{
			name: "a new Service", what: "CREATE services", object: serviceOf(`{"type":"NodePort","selector":{"app":"none"},"ports":[{"protocol":"TCP","targetPort":"http"}]}`),
			effects: []string{"every node opens its ports (TCP http) to whoever reaches the node", "its selector finds 0 Pods"}, undo: []string{"delete it"},
		},
		{
			name: "a new Ingress", what: "CREATE networking.k8s.io/ingresses", object: ingress("shop.example"),
			effects: []string{"requests for shop.example from outside of the cluster will reach Service shop"}, undo: []string{"delete it"},
		},
		{
			name: "another host", what: "UPDATE networking.k8s.io/ingresses", object: ingress("new.example"), old: ingress("old.example"),
			effects: []string{"requests for old.example from outside of the cluster reached until now Service shop", "requests for new.example from outside of the cluster will reach Service shop"},
			undo:    []string{"put back the old values that stand under change"},
		},
		{
			name: "a NetworkPolicy that goes", what: "DELETE networking.k8s.io/networkpolicies", old: `{"metadata":{"name":"web"},"spec":{"podSelector":{"matchLabels":{"app":"a"}}}}`, world: []string{pod("a-0", `{"app":"a"}`, `{}`)},
			effects: []string{"it no longer applies to 1 Pod: a-0"}, undo: []string{againFromManifest},
		},
		{
			name: "a Secret that Pods read", what: "UPDATE secrets", object: `{"metadata":{"name":"web"}}`, old: `{"metadata":{"name":"web"}}`, world: []string{pod("a", `{}`, readsWeb), pod("b", `{}`, `{}`)},
			effects: []string{"read by 1 Pod: a", "Pods that read it as environment keep what they have until they start anew"},
			undo:    []string{"put back the old values; they are not kept here and have to come from where they were made"},
		},
		{
			name: "a ConfigMap that a Pod mounts", what: "DELETE configmaps", old: `{"metadata":{"name":"web"}}`, world: []string{pod("a", `{}`, readsWeb)},
			effects: []string{"read by 1 Pod: a"}, undo: []string{againFromManifest},
		},
		{
			name: "a Secret that nobody reads", what: "DELETE secrets", old: `{"metadata":{"name":"web"}}`,
			effects: []string{"no Pod of the namespace reads it now"}, undo: []string{"none here: its values are not kept; they have to come from where they were made"},
		},
		{
			name: "a command in a Pod", what: "CONNECT pods exec", stored: `{"metadata":{"name":"web"},"spec":{"serviceAccountName":"payer","containers":[{"name":"main","securityContext":{"privileged":true}}]}}`,
			effects: []string{"it runs inside the container; its output is not seen by Step Beyond", "it has what the Pod has: ServiceAccount payer, its volumes and its network", "container main is privileged: it reaches the node"},
			undo:    []string{"what is done through it is not seen, so nobody here can take it back"},
		},
		{
			name: "a token", what: "CREATE serviceaccounts token", object: `{"kind":"TokenRequest"}`,
			effects: []string{"whoever holds the token acts as ServiceAccount web until it expires"}, undo: []string{"a token ends with what it is bound to, or with its ServiceAccount, and not before"},
		},
		{
			name: "a binding", what: "CREATE pods binding", object: `{"kind":"Binding"}`, undo: []string{"none: a Pod that runs on a node stays there until it is deleted"},
		},
		{
			name: "a container beside the others", what: "UPDATE pods ephemeralcontainers", object: `{}`, old: `{}`,
			effects: []string{"the container runs beside the others of the Pod, with its ServiceAccount and network"}, undo: []string{"none while the Pod lives: such a container cannot be taken out; delete the Pod"},
		},
		{name: "a new Job", what: "CREATE batch/jobs", object: `{}`, undo: []string{"delete it; what it did until then stays done"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, c.what, c.object, c.old)
			req.Options = decode(t, c.options)
			var stored *unstructured.Unstructured
			if c.stored != "" {
				stored = &unstructured.Unstructured{Object: decode(t, c.stored)}
			}
			told := Of(t.Context(), world(t, c.world...), req, stored, c.change)
			if diff := cmp.Diff(Told{Effects: c.effects, Undo: c.undo}, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves B-2: what cannot be read is said, and never waited for.
func TestWhatCannotBeReadIsSaidAndNotWaitedFor(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", fmt.Errorf("hunter2"))
	failing := func(err error) client.Reader {
		return interceptor.NewClient(world(t), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return err
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err },
		})
	}
	silent := interceptor.NewClient(world(t), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	for name, tt := range map[string]struct {
		live client.Reader
		why  string
	}{
		"an API server that is silent": {silent, "it took too long"},
		"a role that is too narrow":    {failing(forbidden), "the manager may not"},
		"an error":                     {failing(fmt.Errorf("hunter2")), "the API server gave an error"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			told := Of(t.Context(), tt.live, request(t, "DELETE persistentvolumeclaims", "", boundClaim), nil, nil)
			if took := time.Since(began); took > 2*lookWithin {
				t.Errorf("it took %s, want at most about %s", took, lookWithin)
			}
			want := Told{
				Effects: []string{"the Pods of the namespace could not be read (" + tt.why + ")", "PersistentVolume pv-1 could not be read (" + tt.why + ")"},
				Undo:    []string{"not known, because the volume could not be seen: count on none"},
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsToldIsBoundedAndPlain(t *testing.T) {
	var rules []any
	for i := range 100 {
		rules = append(rules, map[string]any{"host": fmt.Sprintf("h%d\u202e\n\x1b[2J", i)})
	}
	object, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"rules": rules}})
	if err != nil {
		t.Fatal(err)
	}
	told := Of(t.Context(), world(t), request(t, "CREATE networking.k8s.io/ingresses", string(object), ""), nil, nil)
	if len(told.Effects) != MaxEffects || told.Effects[MaxEffects-1] != "and 69 more" {
		t.Errorf("%d lines, the last %q", len(told.Effects), told.Effects[len(told.Effects)-1])
	}
	if want := `requests for h0\u202e\n\x1b[2J from outside of the cluster will reach `; told.Effects[0] != want {
		t.Errorf("%q, want %q", told.Effects[0], want)
	}
	many := make([]string, 0, 7)
	for i := range 7 {
		many = append(many, fmt.Sprintf("p%d", i))
	}
	l := &look{podList: &podList{more: true, live: []corev1.Pod{}}}
	if got, want := l.counted(many), "at least 7 Pods: p0, p1, p2, p3, p4 and 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
