package integration_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// native is a request as it goes over the wire.
type native struct {
	name, verb, path, contentType, body string
}

// answered sends a request and gives the status and the body as the API server wrote it.
func answered(ctx context.Context, t *testing.T, a *actor, r native) string {
	t.Helper()
	config := rest.CopyConfig(a.config)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, r.verb, config.Host+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json")
	if r.contentType != "" {
		request.Header.Set("Content-Type", r.contentType)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status + "\n" + string(body)
}

// volatile differs between any two objects, governed or not; the stamp is provenance and documented as such.
var volatile = []struct{ pattern, place string }{
	{`"uid":"[-0-9a-f]+"`, `"uid":"U"`}, {`"resourceVersion":"[0-9]+"`, `"resourceVersion":"V"`},
	{`"(creationTimestamp|deletionTimestamp|time)":"[^"]+"`, `"$1":"T"`},
	{`"managedFields":\[.*?\}\}?\]`, `"managedFields":[]`},
	{`"` + regexp.QuoteMeta(v1alpha1.AnnotationCreatedBy) + `":"[^"]+"`, ``}, {`"annotations":\{\},?`, ``},
}

func withoutVolatile(text, namespace string) string {
	for _, v := range volatile {
		text = regexp.MustCompile(v.pattern).ReplaceAllString(text, v.place)
	}
	return strings.ReplaceAll(text, namespace, "NAMESPACE")
}

// Proves B-5: what the API server answers to an allowed request reaches the agent as it is, success and failure alike:
// the same requests of an agent that nobody governs have the same answers.
func TestAllowedRequestsHaveTheAnswersOfTheAPIServer(t *testing.T) {
	h := at(t, "stamps")
	must(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "free-agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "free", Name: "default"}},
	})
	free, err := accountActor(t.Context(), "free", "default", "")
	if err != nil {
		t.Fatal(err)
	}
	const merge, strategic, jsonPatch = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"
	configMaps := "/api/v1/namespaces/NAMESPACE/configmaps"
	deployments := "/apis/apps/v1/namespaces/NAMESPACE/deployments"
	requests := []native{
		{"a creation", "POST", configMaps, "application/json", `{"metadata":{"name":"native"},"data":{"a":"1"}}`},
		{"a creation of what exists", "POST", configMaps, "application/json", `{"metadata":{"name":"native"},"data":{"a":"2"}}`},
		{"a creation that is not valid", "POST", configMaps, "application/json", `{"metadata":{"name":"Not Valid"},"data":{"a b":"1"}}`},
		{"a body that is no JSON", "POST", configMaps, "application/json", `{"metadata":`},
		{"an unknown field", "POST", configMaps + "?fieldValidation=Strict", "application/json", `{"metadata":{"name":"strict"},"dato":{}}`},
		{"a patch", "PATCH", configMaps + "/native", merge, `{"data":{"b":"2"}}`},
		{"a patch whose test fails", "PATCH", configMaps + "/native", jsonPatch, `[{"op":"test","path":"/data/a","value":"9"},{"op":"remove","path":"/data/a"}]`},
		{"a patch of a path that is not there", "PATCH", configMaps + "/native", jsonPatch, `[{"op":"remove","path":"/data/zzz"}]`},
		{"an update of an old version", "PUT", configMaps + "/native", "application/json", `{"metadata":{"name":"native","resourceVersion":"1"},"data":{"a":"3"}}`},
		{"an update of what is not there", "PATCH", configMaps + "/missing", merge, `{"data":{"b":"2"}}`},
		{"a read", "GET", configMaps + "/native", "", ""},
		{"a read of what is not there", "GET", configMaps + "/missing", "", ""},
		{"a kind that is not there", "POST", "/apis/acme.example/v1/namespaces/NAMESPACE/widgets", "application/json", `{"metadata":{"name":"w"}}`},
		{"a workload that is not valid", "POST", deployments, "application/json", `{"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[]}}}}`},
		{"a strategic patch of what is not there", "PATCH", deployments + "/missing", strategic, `{"spec":{"replicas":3}}`},
		{"a deletion with another precondition", "DELETE", configMaps + "/native", "application/json", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`},
		{"a deletion", "DELETE", configMaps + "/native", "", ""},
		{"a deletion of what is gone", "DELETE", configMaps + "/native", "", ""},
	}
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			ask := func(a *actor, namespace string) string {
				own := r
				own.path = strings.ReplaceAll(r.path, "NAMESPACE", namespace)
				return withoutVolatile(answered(t.Context(), t, a, own), namespace)
			}
			want := ask(free, "free")
			if diff := cmp.Diff(want, ask(h.agent, h.namespace)); diff != "" {
				t.Errorf("the governed agent's answer (-native +governed):\n%s", diff)
			}
		})
	}
}
