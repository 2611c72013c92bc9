package origin_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// partial is a reader that answers for some kinds, and for lists, with an error.
type partial struct {
	reader
	kinds map[string]error
	lists error
}

func (r *partial) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := r.kinds[into.(*unstructured.Unstructured).GetKind()]; err != nil {
		return err
	}
	return r.reader.Get(ctx, key, into, options...)
}

func (r *partial) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if r.lists != nil {
		return r.lists
	}
	return r.reader.List(ctx, into, options...)
}

func foundBy(t *testing.T, live *partial, req kube.Request) (origin.Found, error) {
	t.Helper()
	finder := origin.Finder{Live: live, Mapper: mapper(), Stamper: stamper}
	return finder.Of(t.Context(), &req, mine)
}

// mountingClaim is the creation of a Pod that mounts the claim data.
func mountingClaim() kube.Request {
	req := request("CREATE", "", "pods", "", nil)
	req.Object = map[string]any{"spec": map[string]any{"volumes": []any{map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "data"}}}}}
	return req
}

func scalingDeployment(apiVersion string) kube.Request {
	req := request("CREATE", "autoscaling", "horizontalpodautoscalers", "", nil)
	req.Object = map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": apiVersion, "kind": "Deployment", "name": "web"}}}
	return req
}

// Proves C-4: what the API server will not show is foreign, and no error that would stop the request without a reason.
func TestWhatTheAPIServerWillNotShowIsForeign(t *testing.T) {
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "acme.example", Kind: "App"}}
	for name, refused := range map[string]error{
		"a kind that nobody serves":   noKind,
		"a kind without get":          apierrors.NewMethodNotSupported(schema.GroupResource{}, "get"),
		"a kind that may not be read": apierrors.NewForbidden(schema.GroupResource{}, "web", nil),
	} {
		t.Run(name, func(t *testing.T) {
			live := &partial{kinds: map[string]error{"App": refused, "Deployment": refused, "PersistentVolumeClaim": refused}}
			pod := object("v1", "Pod", "web-1-a", ownedBy("acme.example/v1", "App", "web"), writtenBy(mine))
			if got, err := foundBy(t, live, request("DELETE", "", "pods", "", pod)); err != nil || got.Origin != policy.OriginController || got.Recreated {
				t.Errorf("a pod of it: origin %s, recreated %v, error %v", got.Origin, got.Recreated, err)
			}
			if got, err := foundBy(t, live, scalingDeployment("apps/v1")); err != nil || got.ScaleTarget != "" {
				t.Errorf("an autoscaler of it: scale target %q, error %v", got.ScaleTarget, err)
			}
			if got, err := foundBy(t, live, mountingClaim()); err != nil || got.OwnClaims != nil {
				t.Errorf("a claim: own claims %v, error %v", got.OwnClaims, err)
			}
		})
	}
	t.Run("pods that may not be listed", func(t *testing.T) {
		live := &partial{lists: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)}
		live.objects = []map[string]any{object("apps/v1", "ReplicaSet", "web-1", selecting)}
		pod := object("v1", "Pod", "web-1-a", ownedBy("apps/v1", "ReplicaSet", "web-1"), ready)
		if got, err := foundBy(t, live, request("DELETE", "", "pods", "", pod)); err != nil || got.Recreated {
			t.Errorf("recreated %v, error %v", got.Recreated, err)
		}
	})
}

// Proves F-1 for what a request reaches beyond its target.
func TestAnAPIServerThatDoesNotAnswerVouchesForNothing(t *testing.T) {
	away := errors.New("the API server is away")
	live := &partial{kinds: map[string]error{"PersistentVolumeClaim": away, "Deployment": away}, lists: away}
	live.objects = []map[string]any{object("apps/v1", "ReplicaSet", "web-1", selecting)}
	pod := object("v1", "Pod", "web-1-a", ownedBy("apps/v1", "ReplicaSet", "web-1"), ready)
	for name, req := range map[string]kube.Request{
		"a claim": mountingClaim(), "an autoscaler's target": scalingDeployment("apps/v1"), "replicas": request("DELETE", "", "pods", "", pod),
	} {
		got, err := foundBy(t, live, req)
		if !errors.Is(err, away) || got.Recreated || got.OwnClaims != nil || got.ScaleTarget != "" {
			t.Errorf("%s: %+v, error %v; want the reader's error", name, got, err)
		}
	}
}

func TestAnAutoscalersTargetIsReadAsItsControllerReadsIt(t *testing.T) {
	own := &partial{}
	own.objects = []map[string]any{object("apps/v1", "Deployment", "web", stamped(mine, "apps", "deployments"))}
	for apiVersion, want := range map[string]policy.Origin{
		"apps/v1": policy.OriginThisSession, "apps/v0": policy.OriginThisSession, "v1": "", "acme.example/v1": "",
	} {
		if got, err := foundBy(t, own, scalingDeployment(apiVersion)); err != nil || got.ScaleTarget != want {
			t.Errorf("%s: scale target %q, error %v; want %q", apiVersion, got.ScaleTarget, err, want)
		}
	}
	copied := &partial{}
	copied.objects = []map[string]any{object("apps/v1", "Deployment", "web", stamped(mine, "apps", "deployments"), ownedBy("acme.example/v1", "App", "web"))}
	if got, err := foundBy(t, copied, scalingDeployment("apps/v1")); err != nil || got.ScaleTarget != policy.OriginController {
		t.Errorf("a Deployment that a controller made, with a copied stamp: scale target %q, error %v", got.ScaleTarget, err)
	}
}

func TestOnlyReplicasStandInForAPod(t *testing.T) {
	plainSelector := func(fields map[string]any) {
		fields["spec"] = map[string]any{"selector": map[string]any{"app": "web"}}
	}
	for _, test := range []struct {
		apiVersion, kind string
		selector         func(map[string]any)
		want             bool
	}{
		{"v1", "ReplicationController", plainSelector, true},
		{"batch/v1", "Job", selecting, false},
		{"apps.example/v1", "ReplicaSet", selecting, false},
	} {
		owned := ownedBy(test.apiVersion, test.kind, "web-1")
		pod := object("v1", "Pod", "web-1-a", owned, ready)
		live := []map[string]any{pod, object("v1", "Pod", "web-1-b", owned, ready), object(test.apiVersion, test.kind, "web-1", test.selector)}
		if got := find(t, request("DELETE", "", "pods", "", pod), live...); got.Recreated != test.want {
			t.Errorf("%s: recreated %v, want %v", test.kind, got.Recreated, test.want)
		}
	}
}

func TestAClaimThatTheRequestNamesIsNotItsTemplates(t *testing.T) {
	set := func(pod map[string]any) map[string]any {
		return object("apps/v1", "StatefulSet", "db", stamped(mine, "apps", "statefulsets"), created("2026-11-30T17:00:00Z"), func(fields map[string]any) {
			fields["spec"] = map[string]any{
				"replicas": int64(1), "template": map[string]any{"spec": pod},
				"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}},
			}
		})
	}
	req := request("UPDATE", "apps", "statefulsets", "", set(map[string]any{}))
	req.Object = set(map[string]any{"volumes": []any{map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "theirs"}}}})
	young := object("v1", "PersistentVolumeClaim", "theirs", created("2026-11-30T19:00:00Z"))
	if got := find(t, req, young).OwnClaims; got != nil {
		t.Errorf("own claims %v", got)
	}
	fresh := request("CREATE", "apps", "statefulsets", "", nil)
	fresh.Object = set(map[string]any{})
	if got := find(t, fresh, object("v1", "PersistentVolumeClaim", "data-db-0", created("2026-11-30T19:00:00Z"))).OwnClaims; got != nil {
		t.Errorf("a new StatefulSet's own claims: %v", got)
	}
}
