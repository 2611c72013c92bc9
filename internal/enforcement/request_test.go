package enforcement

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// request is one HTTP request to the API server. It is sent as a dry run, so that every caller can repeat it.
type request struct {
	method, path string
	patch        string // content type "merge" or "strategic"; only for PATCH
	body         string // YAML
}

func post(path, body string) request  { return request{method: http.MethodPost, path: path, body: body} }
func remove(path string) request      { return request{method: http.MethodDelete, path: path} }
func connect(path string) request     { return request{method: http.MethodGet, path: path} }
func merge(path, body string) request { return request{http.MethodPatch, path, "merge", body} }
func replace(path, body string) request {
	return request{method: http.MethodPut, path: path, body: body}
}
func strategic(path, body string) request {
	return request{http.MethodPatch, path, "strategic", body}
}

// send is the API server's answer, nil for success.
func (r request) send(ctx context.Context, t *testing.T, cfg *rest.Config) error {
	t.Helper()
	return r.do(ctx, t, cfg).Error()
}

func (r request) do(ctx context.Context, t *testing.T, cfg *rest.Config) rest.Result {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	if cfg.WarningHandler == nil {
		cfg.WarningHandler = rest.NoWarnings{}
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	body, err := yaml.YAMLToJSON([]byte(r.body))
	if err != nil {
		t.Fatalf("body of %s: %v", r.path, err)
	}
	call := client.Discovery().RESTClient().Verb(r.method).RequestURI(r.path)
	if r.method != http.MethodGet {
		call = call.Param("dryRun", "All")
	}
	if r.body != "" { // a DELETE with a body is not a dry run, whatever its query says
		call = call.Body(body)
	}
	switch {
	case r.patch != "":
		call = call.SetHeader("Content-Type", "application/"+r.patch+"-patch+json")
		if r.patch == "strategic" {
			call = call.SetHeader("Content-Type", "application/strategic-merge-patch+json")
		}
	default:
		call = call.SetHeader("Content-Type", "application/json")
	}
	return call.Do(ctx)
}

// answer is what a caller reads of a refusal: the status code, the enforcer and the enforcer's own words. The zero
// value is a request that no enforcer refused.
type answer struct {
	Code     int32
	Enforcer string
	Message  string
}

// answerOf splits the API server's message. Errors that are not a refusal by an enforcer of ours give the zero value,
// because a proxied or malformed request may fail for other reasons behind the floor.
func answerOf(err error) answer {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return answer{}
	}
	text := status.Status().Message
	for _, enforcer := range []string{FloorAuthority, FloorPods, FloorSelf, FloorForbidden} {
		if _, message, found := strings.Cut(text, "ValidatingAdmissionPolicy '"+enforcer+"' with binding '"+enforcer+"' denied request: "); found {
			return answer{status.Status().Code, enforcer, message}
		}
	}
	if _, message, found := strings.Cut(text, `admission webhook "`+EntryEnforce+`" denied the request: `); found {
		return answer{status.Status().Code, EntryEnforce, message}
	}
	return answer{}
}

// review is the request as admission would show it, with the objects that the API server itself makes of it for a
// caller who is not governed. ok is false unless it writes a built-in kind with a pod template in namespace shop or search.
func (r request) review(t *testing.T, c *cluster) (review kube.Request, ok bool) {
	t.Helper()
	parts := strings.Split(strings.Trim(r.path, "/"), "/") // apis/GROUP/VERSION or api/VERSION, namespaces/NS/RESOURCE[/NAME[/SUBRESOURCE]]
	if parts[0] == "api" {
		parts = append([]string{"api", ""}, parts[1:]...)
	}
	if len(parts) < 6 || r.method == http.MethodDelete || r.method == http.MethodGet {
		return kube.Request{}, false
	}
	parts = append(parts, "", "")
	review = kube.Request{
		Operation: "UPDATE", Group: parts[1], Version: parts[2], Namespace: parts[4], Resource: parts[5], Name: parts[6], Subresource: parts[7],
		ServiceAccount: kube.ServiceAccount{Namespace: "shop", Name: "agent"},
	}
	if !slices.ContainsFunc(podTemplateKinds, func(k podTemplateKind) bool { return k.group == review.Group && k.resource == review.Resource }) {
		return kube.Request{}, false
	}
	decode := func(result rest.Result) map[string]any {
		text, err := result.Raw()
		if err != nil {
			t.Fatalf("%s: %v", r.path, err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	review.Object = decode(r.do(t.Context(), t, c.bystander))
	review.Kind, _ = review.Object["kind"].(string)
	if r.method == http.MethodPost {
		review.Operation = "CREATE"
		return review, true
	}
	review.OldObject = decode(request{method: http.MethodGet, path: r.path}.do(t.Context(), t, c.bystander))
	return review, true
}
