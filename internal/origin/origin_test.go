package origin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

const (
	mine   = "checkout/agent-1"
	theirs = "checkout/agent-2"
)

var stamper = stamp.Stamper{Key: bytes.Repeat([]byte{7}, 32)}

// reader serves objects; err is what it answers instead.
type reader struct {
	objects []map[string]any
	err     error
}

func (r *reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	wanted := into.(*unstructured.Unstructured)
	for _, fields := range r.objects {
		object := &unstructured.Unstructured{Object: fields}
		if object.GroupVersionKind() == wanted.GroupVersionKind() && client.ObjectKeyFromObject(object) == key {
			object.DeepCopyInto(wanted)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List serves objects by their labels.
func (r *reader) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	if r.err != nil {
		return r.err
	}
	var selected client.ListOptions
	selected.ApplyOptions(options)
	items := []any{}
	for _, fields := range r.objects {
		object := &unstructured.Unstructured{Object: fields}
		listed := strings.HasSuffix(fmt.Sprintf("%T", into), "."+object.GetKind()+"List")
		if listed && object.GetNamespace() == selected.Namespace && selected.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			items = append(items, fields)
		}
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"items": items}, into)
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"}})
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "batch", Version: "v1", Kind: "Job"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}

// object in namespace checkout with UID uid-NAME.
func object(apiVersion, kind, name string, changes ...func(map[string]any)) map[string]any {
	fields := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": "checkout", "name": name, "uid": "uid-" + name},
	}
	for _, change := range changes {
		change(fields)
	}
	return fields
}

func metadata(fields map[string]any) map[string]any { return fields["metadata"].(map[string]any) }

// stamped by a session, as an object of this group and resource.
func stamped(session, group, resource string) func(map[string]any) {
	return func(fields map[string]any) {
		generateName, _ := metadata(fields)["generateName"].(string)
		subject := stamp.Subject{Group: group, Resource: resource, Namespace: "checkout", Name: metadata(fields)["name"].(string), GenerateName: generateName}
		withStamp(stamper.CreatedBy(session, subject))(fields)
	}
}

func withStamp(text string) func(map[string]any) {
	return func(fields map[string]any) {
		metadata(fields)["annotations"] = map[string]any{v1alpha1.AnnotationCreatedBy: text}
	}
}

// ownedBy a controller.
func ownedBy(apiVersion, kind, name string) func(map[string]any) {
	return func(fields map[string]any) {
		metadata(fields)["ownerReferences"] = []any{map[string]any{
			"apiVersion": apiVersion, "kind": kind, "name": name, "uid": "uid-" + name, "controller": true,
		}}
	}
}

// writtenBy marks a pod as made from a template that the session wrote.
func writtenBy(session string) func(map[string]any) {
	return func(fields map[string]any) {
		metadata(fields)["annotations"] = map[string]any{v1alpha1.AnnotationTemplateWriter: session}
	}
}

// ready pod of application web.
func ready(fields map[string]any) {
	labelled(fields)
	fields["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
}

func labelled(fields map[string]any) { metadata(fields)["labels"] = map[string]any{"app": "web"} }

// selecting gives a controller the selector of application web.
func selecting(fields map[string]any) {
	fields["spec"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}
}

func created(at string) func(map[string]any) {
	return func(fields map[string]any) { metadata(fields)["creationTimestamp"] = at }
}

// request about an object of this group and resource; the object is what it was before.
func request(operation, group, resource, subresource string, old map[string]any) kube.Request {
	req := kube.Request{
		Operation: operation, Group: group, Version: "v1", Resource: resource, Subresource: subresource, Namespace: "checkout", Name: "web",
	}
	if old != nil {
		req.Name = metadata(old)["name"].(string)
		if subresource == "" {
			req.OldObject = old
		}
	}
	return req
}

func find(t *testing.T, req kube.Request, live ...map[string]any) origin.Found {
	t.Helper()
	finder := origin.Finder{Live: &reader{objects: live}, Mapper: mapper(), Stamper: stamper}
	found, err := finder.Of(t.Context(), &req, mine)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Proves C-4 for the origin: only a stamp that verifies gives ThisSession.
func TestOnlyAVerifiedStampGivesAnOrigin(t *testing.T) {
	configMap := func(changes ...func(map[string]any)) map[string]any {
		return object("v1", "ConfigMap", "web", changes...)
	}
	others := stamper.CreatedBy(theirs, stamp.Subject{Resource: "configmaps", Namespace: "checkout", Name: "web"})
	for _, test := range []struct {
		name string
		old  map[string]any
		want policy.Origin
	}{
		{"the session's own stamp", configMap(stamped(mine, "", "configmaps")), policy.OriginThisSession},
		{"another session's stamp", configMap(stamped(theirs, "", "configmaps")), policy.OriginOtherSession},
		{"no stamp", configMap(), policy.OriginUnknown},
		{"the stamp of an object of another name", configMap(withStamp(stamper.CreatedBy(mine, stamp.Subject{Resource: "configmaps", Namespace: "checkout", Name: "api"}))), policy.OriginUnknown},
		{"the stamp of an object of another namespace", configMap(withStamp(stamper.CreatedBy(mine, stamp.Subject{Resource: "configmaps", Namespace: "search", Name: "web"}))), policy.OriginUnknown},
		{"the stamp of an object of another kind", configMap(withStamp(stamper.CreatedBy(mine, stamp.Subject{Resource: "secrets", Namespace: "checkout", Name: "web"}))), policy.OriginUnknown},
		{"the stamp of another installation", configMap(withStamp(stamp.Stamper{Key: bytes.Repeat([]byte{8}, 32)}.CreatedBy(mine, stamp.Subject{Resource: "configmaps", Namespace: "checkout", Name: "web"}))), policy.OriginUnknown},
		{"another session's stamp with this session's name written over", configMap(withStamp(strings.Replace(others, theirs, mine, 1))), policy.OriginUnknown},
		{"a text that is no stamp", configMap(withStamp(mine)), policy.OriginUnknown},
		{"a generated name", configMap(func(fields map[string]any) {
			metadata(fields)["name"], metadata(fields)["generateName"] = "web-abcde", "web-"
		}, func(fields map[string]any) {
			withStamp(stamper.CreatedBy(mine, stamp.Subject{Resource: "configmaps", Namespace: "checkout", GenerateName: "web-"}))(fields)
		}), policy.OriginThisSession},
		{"a generated name's stamp on a name that was not generated", configMap(withStamp(stamper.CreatedBy(mine, stamp.Subject{Resource: "configmaps", Namespace: "checkout", GenerateName: "web"}))), policy.OriginUnknown},
		{"an object that a controller made", configMap(ownedBy("acme.example/v1", "App", "web")), policy.OriginController},
		{"an owned object with the session's own stamp, which its template may have brought", configMap(ownedBy("acme.example/v1", "App", "web"), stamped(mine, "", "configmaps")), policy.OriginController},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, operation := range []string{"UPDATE", "DELETE"} {
				if got := find(t, request(operation, "", "configmaps", "", test.old)); got.Origin != test.want {
					t.Errorf("%s: origin %s, want %s", operation, got.Origin, test.want)
				}
			}
		})
	}
}

func TestACallerWithoutASessionMadeNothing(t *testing.T) {
	old := object("v1", "ConfigMap", "web", stamped("", "", "configmaps"))
	finder := origin.Finder{Live: &reader{}, Mapper: mapper(), Stamper: stamper}
	req := request("UPDATE", "", "configmaps", "", old)
	found, err := finder.Of(t.Context(), &req, "")
	if err != nil {
		t.Fatal(err)
	}
	if found.Origin == policy.OriginThisSession {
		t.Error("an empty session key made the object of an empty session key")
	}
}

func TestWhatIsCreatedHasNoOrigin(t *testing.T) {
	req := request("CREATE", "", "configmaps", "", nil)
	req.Object = object("v1", "ConfigMap", "web", stamped(mine, "", "configmaps"))
	if diff := cmp.Diff(origin.Found{Origin: policy.OriginUnknown}, find(t, req)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestAPodIsTheSessionsWhenItsChainEndsInWhatTheSessionMade(t *testing.T) {
	const (
		own, foreign, other = policy.OriginThisSession, policy.OriginController, policy.OriginOtherSession
	)
	pod := func(changes ...func(map[string]any)) map[string]any {
		return object("v1", "Pod", "web-1-a", append([]func(map[string]any){writtenBy(mine)}, changes...)...)
	}
	replicaSet := func(changes ...func(map[string]any)) map[string]any {
		return object("apps/v1", "ReplicaSet", "web-1", append([]func(map[string]any){ownedBy("apps/v1", "Deployment", "web")}, changes...)...)
	}
	byReplicaSet, deployment := ownedBy("apps/v1", "ReplicaSet", "web-1"), object("apps/v1", "Deployment", "web", stamped(mine, "apps", "deployments"))
	for _, test := range []struct {
		name string
		pod  map[string]any
		live []map[string]any
		want policy.Origin
	}{
		{"through ReplicaSet and Deployment", pod(byReplicaSet), []map[string]any{replicaSet(), deployment}, own},
		{"through Job and CronJob", pod(ownedBy("batch/v1", "Job", "nightly-1")), []map[string]any{
			object("batch/v1", "Job", "nightly-1", ownedBy("batch/v1", "CronJob", "nightly")), object("batch/v1", "CronJob", "nightly", stamped(mine, "batch", "cronjobs")),
		}, own},
		{"through a Job of its own", pod(ownedBy("batch/v1", "Job", "import")), []map[string]any{object("batch/v1", "Job", "import", stamped(mine, "batch", "jobs"))}, own},
		{"through a ReplicaSet of its own", pod(byReplicaSet), []map[string]any{object("apps/v1", "ReplicaSet", "web-1", stamped(mine, "apps", "replicasets"))}, own},
		{"a pod that a controller of the session adopted", pod(byReplicaSet, writtenBy("")), []map[string]any{replicaSet(), deployment}, foreign},
		{"a pod from a template that another session wrote last", pod(byReplicaSet, writtenBy(theirs)), []map[string]any{replicaSet(), deployment}, foreign},
		{"through another session's Deployment", pod(byReplicaSet), []map[string]any{replicaSet(), object("apps/v1", "Deployment", "web", stamped(theirs, "apps", "deployments"))}, other},
		{"a person's Deployment", pod(byReplicaSet), []map[string]any{replicaSet(), object("apps/v1", "Deployment", "web")}, foreign},
		{"a Deployment that is gone", pod(byReplicaSet), []map[string]any{replicaSet()}, foreign},
		{"a ReplicaSet that is gone", pod(byReplicaSet), nil, foreign},
		{"a Deployment made anew under the old name", pod(byReplicaSet), []map[string]any{replicaSet(), object("apps/v1", "Deployment", "web", stamped(mine, "apps", "deployments"), func(fields map[string]any) { metadata(fields)["uid"] = "anew" })}, foreign},
		{"a ReplicaSet with a stamp that its template may have brought", pod(byReplicaSet), []map[string]any{replicaSet(stamped(mine, "apps", "replicasets"))}, foreign},
		{"a chain that is longer than any built-in one", pod(byReplicaSet), []map[string]any{
			replicaSet(), object("apps/v1", "Deployment", "web", ownedBy("apps/v1", "Deployment", "parent")), object("apps/v1", "Deployment", "parent", stamped(mine, "apps", "deployments")),
		}, foreign},
		{"an owner of a kind that nobody serves", pod(ownedBy("acme.example/v1", "App", "web")), []map[string]any{object("acme.example/v1", "App", "web", stamped(mine, "acme.example", "apps"))}, foreign},
		{"the pod's own stamp does not count beside a controller", pod(byReplicaSet, stamped(mine, "", "pods")), []map[string]any{replicaSet(), object("apps/v1", "Deployment", "web")}, foreign},
		{"a pod without a controller", pod(), nil, policy.OriginUnknown},
		{"a pod without a controller, with the session's stamp", pod(stamped(mine, "", "pods")), nil, own},
		{"an owner that controls nothing", pod(byReplicaSet, func(fields map[string]any) {
			metadata(fields)["ownerReferences"].([]any)[0].(map[string]any)["controller"] = false
		}), []map[string]any{replicaSet(), deployment}, policy.OriginUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := find(t, request("DELETE", "", "pods", "", test.pod), test.live...); got.Origin != test.want {
				t.Errorf("deletion: origin %s, want %s", got.Origin, test.want)
			}
			// exec shows no object: the pod itself is read live too.
			got := find(t, request("CONNECT", "", "pods", "exec", test.pod), append(test.live, test.pod)...)
			if got.Origin != test.want || got.UID != "uid-web-1-a" {
				t.Errorf("exec: origin %s of %s, want %s of uid-web-1-a", got.Origin, got.UID, test.want)
			}
		})
	}
}

func TestOnlyPodsFollowTheirOwners(t *testing.T) {
	old := object("apps/v1", "ReplicaSet", "web-1", ownedBy("apps/v1", "Deployment", "web"))
	deployment := object("apps/v1", "Deployment", "web", stamped(mine, "apps", "deployments"))
	if got := find(t, request("UPDATE", "apps", "replicasets", "", old), deployment); got.Origin != policy.OriginController {
		t.Errorf("origin %s, want Controller", got.Origin)
	}
}

func TestAPodIsRecreatedWhenAnotherReplicaIsReady(t *testing.T) {
	ofSet := func(kind string) func(map[string]any) { return ownedBy("apps/v1", kind, "web-1") }
	other := func(name string, changes ...func(map[string]any)) map[string]any {
		return object("v1", "Pod", name, changes...)
	}
	gone := func(fields map[string]any) { metadata(fields)["deletionTimestamp"] = "2026-11-30T18:00:00Z" }
	for _, test := range []struct {
		name       string
		kind       string
		controller func(map[string]any)
		others     []map[string]any
		want       bool
	}{
		{"another pod of the ReplicaSet is ready", "ReplicaSet", selecting, []map[string]any{other("web-1-b", ofSet("ReplicaSet"), ready)}, true},
		{"another pod of the StatefulSet is ready", "StatefulSet", selecting, []map[string]any{other("web-1-b", ofSet("StatefulSet"), ready)}, true},
		{"it is the only pod", "ReplicaSet", selecting, nil, false},
		{"the other pod is not ready", "ReplicaSet", selecting, []map[string]any{other("web-1-b", ofSet("ReplicaSet"), labelled)}, false},
		{"the other pod is being deleted", "ReplicaSet", selecting, []map[string]any{other("web-1-b", ofSet("ReplicaSet"), ready, gone)}, false},
		{"the other pod belongs to another controller", "ReplicaSet", selecting, []map[string]any{other("web-2-b", ownedBy("apps/v1", "ReplicaSet", "web-2"), ready)}, false},
		{"the other pod belongs to nobody", "ReplicaSet", selecting, []map[string]any{other("web-b", ready)}, false},
		{"pods of a DaemonSet replace nothing on this node", "DaemonSet", selecting, []map[string]any{other("web-1-b", ofSet("DaemonSet"), ready)}, false},
		{"the controller is being deleted", "ReplicaSet", func(fields map[string]any) { selecting(fields); gone(fields) }, []map[string]any{other("web-1-b", ofSet("ReplicaSet"), ready)}, false},
		{"the controller selects nothing", "ReplicaSet", func(map[string]any) {}, []map[string]any{other("web-1-b", ofSet("ReplicaSet"), ready)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := object("v1", "Pod", "web-1-a", ofSet(test.kind), ready)
			live := append(slices.Clone(test.others), pod, object("apps/v1", test.kind, "web-1", test.controller))
			if got := find(t, request("DELETE", "", "pods", "", pod), live...); got.Recreated != test.want {
				t.Errorf("deletion: recreated = %v, want %v", got.Recreated, test.want)
			}
			if got := find(t, request("CREATE", "", "pods", "eviction", pod), live...); got.Recreated != test.want {
				t.Errorf("eviction: recreated = %v, want %v", got.Recreated, test.want)
			}
			if got := find(t, request("UPDATE", "", "pods", "", pod), live...); got.Recreated {
				t.Error("an update recreates a pod")
			}
		})
	}
	t.Run("a controller that is gone recreates nothing", func(t *testing.T) {
		pod := object("v1", "Pod", "web-1-a", ofSet("ReplicaSet"), ready)
		if find(t, request("DELETE", "", "pods", "", pod), pod, other("web-1-b", ofSet("ReplicaSet"), ready)).Recreated {
			t.Error("recreated by a controller that is not there")
		}
	})
}

// Deletions that are asked about at once would otherwise rest on each other, and the last replica would go with them.
func TestDeletionsDoNotRestOnPodsThatAreLeaving(t *testing.T) {
	pod := func(name string) map[string]any {
		return object("v1", "Pod", name, ownedBy("apps/v1", "ReplicaSet", "web-1"), ready)
	}
	one, two, three := pod("web-1-a"), pod("web-1-b"), pod("web-1-c")
	finder := origin.Finder{Live: &reader{objects: []map[string]any{object("apps/v1", "ReplicaSet", "web-1", selecting), one, two, three}}, Mapper: mapper(), Stamper: stamper}
	recreated := func(old map[string]any, dryRun bool) bool {
		req := request("DELETE", "", "pods", "", old)
		req.DryRun = dryRun
		found, err := finder.Of(t.Context(), &req, mine)
		if err != nil {
			t.Fatal(err)
		}
		return found.Recreated
	}
	got := []bool{recreated(one, true), recreated(two, true), recreated(three, true), recreated(one, false), recreated(two, false), recreated(three, false)}
	if diff := cmp.Diff([]bool{true, true, true, true, true, false}, got); diff != "" {
		t.Errorf("recreated, three dry runs and three deletions (-want +got):\n%s", diff)
	}
}

func TestAnAutoscalerIsJudgedByWhatItScales(t *testing.T) {
	scaling := func(kind, name string) kube.Request {
		req := request("CREATE", "autoscaling", "horizontalpodautoscalers", "", nil)
		req.Object = map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": name}}}
		return req
	}
	live := []map[string]any{
		object("apps/v1", "Deployment", "mine", stamped(mine, "apps", "deployments")), object("apps/v1", "Deployment", "theirs", stamped(theirs, "apps", "deployments")),
		object("apps/v1", "Deployment", "unstamped"),
	}
	for name, test := range map[string]struct {
		req  kube.Request
		want policy.Origin
	}{
		"an own workload":                 {scaling("Deployment", "mine"), policy.OriginThisSession},
		"another session's workload":      {scaling("Deployment", "theirs"), policy.OriginOtherSession},
		"a person's workload":             {scaling("Deployment", "unstamped"), policy.OriginUnknown},
		"a workload that is not there":    {scaling("Deployment", "none"), policy.OriginUnknown},
		"a workload of an unknown kind":   {scaling("App", "mine"), ""},
		"a reference without a name":      {scaling("Deployment", ""), ""},
		"a request that scales nothing":   {request("CREATE", "", "configmaps", "", nil), ""},
		"an update that changes no scale": {request("UPDATE", "autoscaling", "horizontalpodautoscalers", "", object("autoscaling/v2", "HorizontalPodAutoscaler", "web")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := find(t, test.req, live...); got.ScaleTarget != test.want {
				t.Errorf("scale target %q, want %q", got.ScaleTarget, test.want)
			}
		})
	}
}

func TestWhichClaimsAreTheSessions(t *testing.T) {
	mounting := func(claims ...string) kube.Request {
		volumes := []any{}
		for _, claim := range claims {
			volumes = append(volumes, map[string]any{"name": claim, "persistentVolumeClaim": map[string]any{"claimName": claim}})
		}
		req := request("CREATE", "", "pods", "", nil)
		req.Object = map[string]any{"spec": map[string]any{"volumes": volumes}}
		return req
	}
	claim := func(name string, changes ...func(map[string]any)) map[string]any {
		return object("v1", "PersistentVolumeClaim", name, changes...)
	}
	set := func(replicas int64) map[string]any {
		return object("apps/v1", "StatefulSet", "db", stamped(mine, "apps", "statefulsets"), created("2026-11-30T17:00:00Z"), func(fields map[string]any) {
			fields["spec"] = map[string]any{"replicas": replicas, "volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}}
		})
	}
	grown := request("UPDATE", "apps", "statefulsets", "", set(1))
	grown.Object = set(3)
	for name, test := range map[string]struct {
		req  kube.Request
		live []map[string]any
		want []string
	}{
		"one that the session made":                  {mounting("a"), []map[string]any{claim("a", stamped(mine, "", "persistentvolumeclaims"))}, []string{"a"}},
		"none that another session made":             {mounting("a"), []map[string]any{claim("a", stamped(theirs, "", "persistentvolumeclaims"))}, nil},
		"none that a person made":                    {mounting("a", "b"), []map[string]any{claim("a"), claim("b", stamped(mine, "", "persistentvolumeclaims"))}, []string{"b"}},
		"one that is not there":                      {mounting("a"), nil, []string{"a"}},
		"none of more than are looked at":            {mounting("a", "b", "c", "d", "e", "f", "g", "h", "i"), nil, nil},
		"those that its own StatefulSet made":        {grown, []map[string]any{claim("data-db-1", created("2026-11-30T17:00:00Z")), claim("data-db-2", created("2026-11-30T17:30:00Z"))}, []string{"data-db-1", "data-db-2"}},
		"none that waited there for its StatefulSet": {grown, []map[string]any{claim("data-db-1", created("2026-11-30T16:59:59Z")), claim("data-db-2", created("2026-11-30T17:30:00Z"))}, []string{"data-db-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, find(t, test.req, test.live...).OwnClaims); diff != "" {
				t.Errorf("own claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScaleIsAboutItsParent(t *testing.T) {
	parent := object("apps/v1", "Deployment", "web", stamped(mine, "apps", "deployments"))
	got := find(t, request("UPDATE", "apps", "deployments", "scale", parent), parent)
	if got.Origin != policy.OriginThisSession || got.UID != "uid-web" {
		t.Errorf("origin %s of %s, want ThisSession of uid-web", got.Origin, got.UID)
	}
	if diff := cmp.Diff(parent, got.Parent); diff != "" {
		t.Errorf("parent (-want +got):\n%s", diff)
	}
	if status := find(t, request("UPDATE", "apps", "deployments", "status", parent), parent); status.Parent != nil {
		t.Error("a request for the status has a parent")
	}
}

func TestWhatCannotBeReadIsForeign(t *testing.T) {
	parent := object("apps/v1", "Deployment", "web", stamped(mine, "apps", "deployments"))
	for name, test := range map[string]struct {
		req kube.Request
		err error
	}{
		"an object that is gone":               {request("UPDATE", "apps", "deployments", "scale", parent), nil},
		"a kind that the manager may not read": {request("UPDATE", "apps", "deployments", "scale", parent), apierrors.NewForbidden(schema.GroupResource{}, "web", nil)},
		"a kind that nobody serves":            {request("UPDATE", "acme.example", "apps", "scale", parent), nil},
		"a subresource of no named object":     {kube.Request{Operation: "CREATE", Version: "v1", Resource: "pods", Subresource: "eviction", Namespace: "checkout"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			finder := origin.Finder{Live: &reader{err: test.err}, Mapper: mapper(), Stamper: stamper}
			got, err := finder.Of(t.Context(), &test.req, mine)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(origin.Found{Origin: policy.OriginUnknown}, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves F-1: an API server that does not answer is an error, and the origin beside it is none of the session's.
func TestAnAPIServerThatDoesNotAnswerIsAnError(t *testing.T) {
	away := errors.New("the API server is away")
	finder := origin.Finder{Live: &reader{err: away}, Mapper: mapper(), Stamper: stamper}
	pod := object("v1", "Pod", "web-1-a", ownedBy("apps/v1", "ReplicaSet", "web-1"))
	for _, req := range []kube.Request{
		request("UPDATE", "apps", "deployments", "scale", object("apps/v1", "Deployment", "web")), request("DELETE", "", "pods", "", pod),
	} {
		got, err := finder.Of(t.Context(), &req, mine)
		if !errors.Is(err, away) || got.Origin == policy.OriginThisSession {
			t.Errorf("%s: origin %s, error %v; want the reader's error", req.Resource, got.Origin, err)
		}
	}
}

func TestTheLastWriterIsThatOfTheObjectItself(t *testing.T) {
	entry := func(manager, at, subresource string) any {
		return map[string]any{"manager": manager, "operation": "Update", "apiVersion": "v1", "time": at, "subresource": subresource}
	}
	for _, test := range []struct {
		name    string
		entries []any
		want    string
	}{
		{"none", nil, ""},
		{"the newest", []any{entry("kubectl", "2026-11-30T17:00:00Z", ""), entry("argocd-controller", "2026-11-30T18:00:00Z", ""), entry("helm", "2026-11-30T16:00:00Z", "")}, "argocd-controller"},
		{"not of the status", []any{entry("kubectl", "2026-11-30T17:00:00Z", ""), entry("kube-controller-manager", "2026-11-30T18:00:00Z", "status")}, "kubectl"},
		{"not of a scale", []any{entry("kubectl", "2026-11-30T17:00:00Z", ""), entry("hpa", "2026-11-30T18:00:00Z", "scale")}, "kubectl"},
		{"not without a time", []any{map[string]any{"manager": "helm", "operation": "Apply", "apiVersion": "v1"}, entry("kubectl", "2026-11-30T17:00:00Z", "")}, "kubectl"},
	} {
		t.Run(test.name, func(t *testing.T) {
			old := object("v1", "ConfigMap", "web", func(fields map[string]any) {
				if test.entries != nil {
					metadata(fields)["managedFields"] = test.entries
				}
			})
			if got := find(t, request("UPDATE", "", "configmaps", "", old)).LastWriter; got != test.want {
				t.Errorf("last writer %q, want %q", got, test.want)
			}
		})
	}
}
