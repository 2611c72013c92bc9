package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// secretRead is the question about a Secret read by username.
func secretRead(username string) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{
		User:               username,
		Extra:              map[string]authorizationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=1"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "checkout", Name: "db"},
	}
}

// authorize asks the handler, and fails on any answer that allows.
func authorize(t *testing.T, a *Authorize, spec authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	body, err := json.Marshal(&authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}, Spec: spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	a.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/authorize", strings.NewReader(string(body))))
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("status %d: %v: %s", answer.Code, err, answer.Body)
	}
	if review.Status.Allowed || review.Status.EvaluationError != "" {
		t.Errorf("the authorizer allows or errs: %+v", review.Status)
	}
	return review.Status
}

// Proves K-2, K-10: what nobody knows is taken for a kind with namespaces, so that a list of it is one of all namespaces.
func TestOnlyKindsThatAreKnownToHaveNoNamespacesAreClusterWide(t *testing.T) {
	v1 := schema.GroupVersion{Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1})
	mapper.Add(v1.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(v1.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	a := &Authorize{Mapper: mapper}
	for _, tt := range []struct {
		version, group, resource string
		want                     bool
	}{
		{"v1", "", "nodes", true}, {"*", "", "nodes", true}, {"", "", "nodes", true}, {"v1", "", "configmaps", false}, {"v1", "", "*", false},
		{"v1", "acme.example", "nodes", false}, {"v1", "", "gadgets", false},
	} {
		if got := a.cluster(&kube.Authorization{Verb: "list", Version: tt.version, Group: tt.group, Resource: tt.resource}); got != tt.want {
			t.Errorf("%+v: cluster-wide %v, want %v", tt, got, tt.want)
		}
	}
}

func authorizer(t *testing.T, scope enforcement.Scope, scopeErr error) *Authorize {
	t.Helper()
	reader := reads{get: func(client.Object) error { return errors.New("not reached") }}
	return &Authorize{
		Store: loaded(t, governedCluster()), Sessions: &identity.Resolver{Cached: reader, Live: reader},
		Scope:  func(context.Context) (enforcement.Scope, error) { return scope, scopeErr },
		Mapper: meta.NewDefaultRESTMapper(nil), Now: func() time.Time { return now },
	}
}

// Proves F-1, K-2, K-10.
func TestTheAuthorizerDeniesOrHasNoOpinion(t *testing.T) {
	held := enforcement.Scope{Namespaces: []string{"once-governed"}}
	with := func(change func(*authorizationv1.SubjectAccessReviewSpec)) authorizationv1.SubjectAccessReviewSpec {
		spec := secretRead("system:serviceaccount:checkout:agent")
		change(&spec)
		return spec
	}
	for _, tt := range []struct {
		name  string
		spec  authorizationv1.SubjectAccessReviewSpec
		scope enforcement.Scope
		err   error
		store func(*Authorize)
		want  string // empty for no opinion
	}{
		{name: "an agent without a session", spec: secretRead("system:serviceaccount:checkout:agent"), want: "Denied: read secrets checkout/db is refused: no session covers this caller"},
		{name: "an agent without a credential", spec: with(func(s *authorizationv1.SubjectAccessReviewSpec) { s.Extra = nil }), want: "carries no credential-id"},
		{name: "a bystander", spec: secretRead("system:serviceaccount:free:agent")},
		{name: "a person", spec: secretRead("ben@acme.example")},
		{name: "a component of the cluster", spec: secretRead("system:kube-controller-manager")},
		{name: "the manager", spec: secretRead("system:serviceaccount:stepbeyond-system:stepbeyond-manager")},
		{name: "a namespace that lost its label", spec: secretRead("system:serviceaccount:once-governed:agent"), scope: held, want: "Denied: read secrets checkout/db is refused: "},
		{name: "what admission sees", spec: with(func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "create" })},
		{name: "no attributes", spec: with(func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes = nil }), want: "spec: must have either resourceAttributes or nonResourceAttributes"},
		{name: "both attributes", spec: with(func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"}
		}), want: "spec: must have either"},
		{name: "no resource", spec: with(func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Resource = "" }), want: "spec.resourceAttributes.resource: must be set"},
		{name: "a bystander's malformed review", spec: authorizationv1.SubjectAccessReviewSpec{User: "ben@acme.example"}},
		{name: "a scope that cannot be read", spec: secretRead("system:serviceaccount:free:agent"), err: errors.New("connection refused"), want: "is refused: deciding failed"},
		{name: "a panic", spec: secretRead("system:serviceaccount:checkout:agent"), store: func(a *Authorize) { a.Store.Current().Engine = nil }, want: "is refused: deciding failed"},
		{name: "no policies yet", spec: secretRead("system:serviceaccount:once-governed:agent"), scope: held, store: func(a *Authorize) { a.Store = &policystore.Store{} }, want: "Step Beyond is starting"},
		{name: "no policies yet, and a bystander", spec: secretRead("system:serviceaccount:free:agent"), scope: held, store: func(a *Authorize) { a.Store = &policystore.Store{} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := authorizer(t, tt.scope, tt.err)
			if tt.store != nil {
				tt.store(a)
			}
			got := authorize(t, a, tt.spec)
			if got.Denied != (tt.want != "") || !strings.Contains(got.Reason, tt.want) {
				t.Errorf("denied %v, %q; want %q", got.Denied, got.Reason, tt.want)
			}
		})
	}
}

// Proves F-1: the API server denies what it gets no review for.
func TestWhatIsNoAuthorizationReviewIsABadRequest(t *testing.T) {
	a := authorizer(t, enforcement.Scope{}, nil)
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "{", "a list": "[]", "another kind": `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview"}`,
		"another version": `{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview"}`,
		"too much":        `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","x":"` + strings.Repeat("x", maxAuthorizationReview) + `"}`,
		"a secret":        `{"password":"` + password,
	} {
		answer := httptest.NewRecorder()
		a.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/authorize", strings.NewReader(body)))
		if answer.Code != http.StatusBadRequest || strings.Contains(answer.Body.String(), password) {
			t.Errorf("%s: status %d: %s", name, answer.Code, answer.Body)
		}
	}
}
