package origin_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// reach is what a request reaches that the session did not make.
type reach struct{ Serves, Adopted, Adopts bool }

func creating(group, resource, kind string, changes ...func(map[string]any)) kube.Request {
	req := request("CREATE", group, resource, "", nil)
	apiVersion := "v1"
	if group != "" {
		apiVersion = group + "/v1"
	}
	req.Object = object(apiVersion, kind, "web", changes...)
	return req
}

// workload selects pods of app web and makes them.
func workload(fields map[string]any) {
	selecting(fields)
	fields["spec"].(map[string]any)["template"] = map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}
}

func serving(app string) func(map[string]any) {
	return func(fields map[string]any) {
		fields["spec"] = map[string]any{"selector": map[string]any{"app": app}}
	}
}

// Proves C-2.
func TestWhatLabelsAndSelectorsReachOfOthers(t *testing.T) {
	pod, deployment, set := creating("", "pods", "Pod", labelled), creating("apps", "deployments", "Deployment", workload), creating("apps", "statefulsets", "StatefulSet", workload)
	service := func(changes ...func(map[string]any)) map[string]any {
		return object("v1", "Service", "web", changes...)
	}
	elsewhere := func(fields map[string]any) { metadata(fields)["namespace"] = "search" }
	for name, tt := range map[string]struct {
		req  kube.Request
		live []map[string]any
		want reach
	}{
		"nothing is there":                     {pod, nil, reach{}},
		"a foreign Service selects the Pod":    {pod, []map[string]any{service(serving("web"))}, reach{Serves: true}},
		"an own Service does":                  {pod, []map[string]any{service(serving("web"), stamped(mine, "", "services"))}, reach{}},
		"another session's Service does":       {pod, []map[string]any{service(serving("web"), stamped(theirs, "", "services"))}, reach{Serves: true}},
		"a foreign Service selects others":     {pod, []map[string]any{service(serving("shop"))}, reach{}},
		"a foreign Service selects nothing":    {pod, []map[string]any{service()}, reach{}},
		"a Service of another namespace":       {pod, []map[string]any{service(serving("web"), elsewhere)}, reach{}},
		"a foreign Service selects a template": {deployment, []map[string]any{service(serving("web"))}, reach{Serves: true}},
		"a foreign ReplicaSet takes the Pod":   {pod, []map[string]any{object("apps/v1", "ReplicaSet", "web-1", selecting)}, reach{Adopted: true}},
		"an own ReplicaSet does":               {pod, []map[string]any{object("apps/v1", "ReplicaSet", "web-1", selecting, stamped(mine, "apps", "replicasets"))}, reach{}},
		"a Deployment takes an orphan":         {deployment, []map[string]any{object("apps/v1", "ReplicaSet", "web-1", labelled)}, reach{Adopts: true}},
		"a ReplicaSet that has a Deployment":   {deployment, []map[string]any{object("apps/v1", "ReplicaSet", "web-1", labelled, ownedBy("apps/v1", "Deployment", "other"))}, reach{}},
		"a StatefulSet takes an orphan":        {set, []map[string]any{object("v1", "Pod", "web-0", labelled)}, reach{Adopts: true}},
		"an own Pod":                           {set, []map[string]any{object("v1", "Pod", "web-0", labelled, stamped(mine, "", "pods"))}, reach{}},
		"a Pod with other labels":              {set, []map[string]any{object("v1", "Pod", "web-0")}, reach{}},
	} {
		t.Run(name, func(t *testing.T) {
			found := find(t, tt.req, tt.live...)
			if diff := cmp.Diff(tt.want, reach{found.Serves, found.Adopted, found.Adopts}); diff != "" {
				t.Errorf("reach (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves F-1.
func TestListsThatFailEndTheRequestAndThoseThatAreForbiddenDoNot(t *testing.T) {
	for _, req := range []kube.Request{creating("", "pods", "Pod", labelled), creating("apps", "deployments", "Deployment", workload), creating("apps", "statefulsets", "StatefulSet", workload)} {
		away := errors.New("the API server is away")
		if _, err := foundBy(t, &partial{lists: away}, req); !errors.Is(err, away) {
			t.Errorf("%s: error %v, want the reader's", req.Resource, err)
		}
		forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
		if found, err := foundBy(t, &partial{lists: forbidden}, req); err != nil || (reach{found.Serves, found.Adopted, found.Adopts}) != (reach{}) {
			t.Errorf("%s: %+v, error %v", req.Resource, found, err)
		}
	}
}
