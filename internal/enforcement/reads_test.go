package enforcement

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"stepbeyond.dev/stepbeyond/policy"
)

func readsOfResources(group string, resources ...string) policy.KubernetesSelector {
	return policy.KubernetesSelector{Groups: []string{group}, Resources: resources, Verbs: []policy.Verb{policy.VerbRead}}
}

// longReads are count selectors that share no text.
func longReads(count int) []policy.KubernetesSelector {
	var all []policy.KubernetesSelector
	for i := range count {
		all = append(all, readsOfResources(fmt.Sprintf("g%d.example", i), strings.Repeat("x", 100)+fmt.Sprint(i)))
	}
	return all
}

// asked tells whether the API server asks about a list of the resource in the core group.
func asked(t *testing.T, matcher *authorizationcel.CELMatcher, user, resource string) bool {
	t.Helper()
	got, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: resource, Namespace: "checkout"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Proves K-2, K-10, F-1: whatever policies name, the file stays one that an API server takes, no rule is dropped, and a
// namespace's own policy makes nobody else's reads depend on the webhook.
func TestTheConditionAboutReadsIsBounded(t *testing.T) {
	own := func(namespace string, selectors ...policy.KubernetesSelector) NamespaceReads {
		return NamespaceReads{Namespace: namespace, Users: []string{namespace + "-robot"}, Selectors: selectors}
	}
	var crowd []NamespaceReads
	for i := range 2_000 {
		crowd = append(crowd, own(fmt.Sprintf("crowd-%d", i), readsOfResources("", "configmaps")))
	}
	modest := own("checkout", readsOfResources("", "configmaps"))
	for name, tt := range map[string]struct {
		reads Reads
		// Who is asked about what: "account resource" in checkout and payments.
		want string
	}{
		"its own callers only":         {Reads{Namespaces: []NamespaceReads{modest}}, "checkout/configmaps"},
		"everything in one namespace":  {Reads{Namespaces: []NamespaceReads{modest, own("payments", readsOfResources("*", "*"))}}, "checkout/configmaps payments/configmaps payments/pods"},
		"a hostile policy":             {Reads{Namespaces: []NamespaceReads{modest, own("payments", longReads(1_000)...)}}, "checkout/configmaps payments/configmaps payments/pods"},
		"a large policy that fits":     {Reads{Namespaces: []NamespaceReads{modest, own("payments", longReads(200)...)}}, "checkout/configmaps"},
		"many namespaces":              {Reads{Namespaces: append(crowd, modest)}, "checkout/configmaps checkout/pods payments/configmaps payments/pods"},
		"too much for everybody":       {Reads{Everybody: longReads(1_000)}, "checkout/configmaps checkout/pods payments/configmaps payments/pods"},
		"a cluster policy":             {Reads{Everybody: []policy.KubernetesSelector{readsOfResources("", "pods")}, Namespaces: []NamespaceReads{modest}}, "checkout/configmaps checkout/pods payments/pods"},
		"names with quotes of a group": {Reads{Namespaces: []NamespaceReads{own("payments", readsOfResources(`"`, "pods"))}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if size := len(unseenExpression(tt.reads)); size > maxUnseenBytes {
				t.Errorf("%d bytes, at most %d", size, maxUnseenBytes)
			}
			scope := Scope{Namespaces: []string{"checkout", "payments"}, Users: []string{"checkout-robot", "payments-robot"}}
			text, err := authorizationConfiguration(scope, tt.reads, "/k")
			if err != nil {
				t.Fatal(err)
			}
			matcher := conditions(t, text)
			var got []string
			for _, namespace := range []string{"checkout", "payments"} {
				for _, resource := range []string{"configmaps", "pods"} {
					account := asked(t, matcher, "system:serviceaccount:"+namespace+":agent", resource)
					if user := asked(t, matcher, namespace+"-robot", resource); user != account {
						t.Errorf("%s in %s: the user is asked about: %v, the account: %v", resource, namespace, user, account)
					}
					if account {
						got = append(got, namespace+"/"+resource)
					}
				}
				if !asked(t, matcher, "system:serviceaccount:"+namespace+":agent", "secrets") {
					t.Errorf("nobody asks about Secrets in %s", namespace)
				}
			}
			if list := strings.Join(got, " "); list != tt.want {
				t.Errorf("asked about %q, want %q", list, tt.want)
			}
			if asked(t, matcher, "system:serviceaccount:free:agent", "configmaps") {
				t.Error("a bystander is asked about")
			}
		})
	}
}
