package coverage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// resource as discovery would list it.
func resource(group, version, path, kind string, verbs ...string) Resource {
	name, subresource, _ := strings.Cut(path, "/")
	return Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: name}, Subresource: subresource,
		Kind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Namespaced: true, Verbs: verbs,
	}
}

func clusterWide(r Resource) Resource {
	r.Namespaced = false
	return r
}

func lines(t *testing.T, resources ...Resource) []string {
	t.Helper()
	rows, err := Matrix(resources)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i := range rows {
		found = append(found, strings.TrimSuffix(line(&rows[i]), "\n"))
	}
	return found
}

// Proves K-7.
func TestEachOperationHasItsClassAndItsGate(t *testing.T) {
	for name, test := range map[string]struct {
		resource Resource
		want     []string
	}{
		"verbs of one operation share a row": {
			resource("", "v1", "configmaps", "ConfigMap", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
			[]string{
				"| configmaps | v1 | create | AUTO | AUTO |  | webhook |",
				"| configmaps | v1 | patch, update | AUTO | AUTO_WITH_DISCLOSURE | MaterialAssumption | webhook |",
				"| configmaps | v1 | delete | AUTO | ASK | Destructive | webhook |",
				"| configmaps | v1 | deletecollection | ASK | ASK | Unbounded | webhook |",
				"| configmaps | v1 | get, list, watch | – | – |  | not gated |",
			},
		},
		"get of a connection is no read": {
			resource("", "v1", "pods/exec", "PodExecOptions", "create", "get"),
			[]string{"| pods/exec | v1 | create, get | AUTO | ASK | Rule, Uncatalogued | webhook |"},
		},
		"a kind that nobody catalogued asks": {
			resource("acme.example", "v1", "things", "Thing", "create"),
			[]string{"| things | v1 | create | ASK | ASK | Uncatalogued | webhook |"},
		},
		"an escalation is closed while the manager is dead": {
			clusterWide(resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "create")),
			[]string{"| clusterroles | v1 | create | FORBIDDEN | FORBIDDEN | EscalatesAuthority | floor and webhook |"},
		},
		"our own kinds are closed": {
			resource("stepbeyond.dev", "v1alpha1", "permissiongrants/status", "PermissionGrant", "update"),
			[]string{"| permissiongrants/status | v1alpha1 | update | FORBIDDEN | FORBIDDEN | EscalatesAuthority | floor and webhook |"},
		},
		"webhook configurations are shown to the floor alone": {
			clusterWide(resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "delete")),
			[]string{"| validatingwebhookconfigurations | v1 | delete | FORBIDDEN | FORBIDDEN | EscalatesAuthority | floor |"},
		},
		"admission policies are shown to nobody": {
			clusterWide(resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies/status", "ValidatingAdmissionPolicy", "update")),
			[]string{"| validatingadmissionpolicies/status | v1 | update | – | – |  | not gated |"},
		},
		"reviews are shown to nobody": {
			clusterWide(resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "create")),
			[]string{"| tokenreviews | v1 | create | – | – |  | not gated |"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, lines(t, test.resource)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionsThatSayTheSameShareARow(t *testing.T) {
	got := lines(t,
		resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "create", "get"),
		resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "create"))
	want := []string{
		"| horizontalpodautoscalers | v2, v1 | create | AUTO | AUTO |  | webhook |",
		"| horizontalpodautoscalers | v1 | get | – | – |  | not gated |",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Proves K-7.
func TestAVerbThatNobodyKnowsFailsTheMatrix(t *testing.T) {
	_, err := Matrix([]Resource{resource("", "v1", "configmaps", "ConfigMap", "create", "teleport")})
	if err == nil || !strings.Contains(err.Error(), `configmaps: verb "teleport" has no operation`) {
		t.Errorf("error = %v, want verb and resource named", err)
	}
}

func TestThePageBeginsWithWhatAdmissionCannotSee(t *testing.T) {
	rows, err := Matrix([]Resource{
		resource("", "v1", "configmaps", "ConfigMap", "create", "get"), clusterWide(resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "create")),
	})
	if err != nil {
		t.Fatal(err)
	}
	page := Render(rows)
	at := 0
	for _, words := range []string{
		"## What admission cannot see", "## Known residuals", "## Matrix", "| 3 rows | Own | Foreign |", "| AUTO | 1 | 1 |", "| not gated: reads | 1 | 1 |",
		"Writes that are not gated: tokenreviews.", "### core", "### authentication.k8s.io",
	} {
		next := strings.Index(page[at:], words)
		if next < 0 {
			t.Fatalf("%q does not follow", words)
		}
		at += next
	}
}

func TestExamplesAreOnePerKindAndGoWhereTheyAreSent(t *testing.T) {
	seen := map[schema.GroupVersionKind]bool{}
	for text := range strings.SplitSeq(examples, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		kind := object.GroupVersionKind()
		if kind.Empty() {
			continue // the comment before the first
		}
		if seen[kind] {
			t.Errorf("%s has two examples", kind)
		}
		seen[kind] = true
	}
	got, known, err := Example(schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "IPAddress"}, Place{Name: "own", Number: 7})
	if err != nil || !known || got.GetName() != "192.0.2.7" {
		t.Errorf("IPAddress is %q, %v, %v; want the name made of the number", got.GetName(), known, err)
	}
	got, known, err = Example(schema.GroupVersionKind{Group: "acme.example", Version: "v1", Kind: "Thing"}, Place{Namespace: "here", Name: "own"})
	if err != nil || known || got.GetName() != "own" || got.GetNamespace() != "here" || got.GetKind() != "Thing" {
		t.Errorf("Thing is %v, %v, %v; want an object without content", got.Object, known, err)
	}
}
