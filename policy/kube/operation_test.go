package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// decode reads a JSON object; an empty text is an object that the review does not have.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return fields
}

// request spells a review as "CREATE apps/deployments" or "UPDATE pods/resize" in namespace checkout, name web.
func request(t *testing.T, what, object, old string) kube.Request {
	t.Helper()
	operation, path, _ := strings.Cut(what, " ")
	group, resource := "", path
	for _, known := range []string{"apps", "batch", "networking.k8s.io", "acme.example", "policy", "autoscaling", "resource.k8s.io"} {
		if rest, ok := strings.CutPrefix(path, known+"/"); ok {
			group, resource = known, rest
		}
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	return kube.Request{
		Operation: operation, Group: group, Version: "v1", Resource: resource, Subresource: subresource,
		Namespace: "checkout", Name: "web", Object: decode(t, object), OldObject: decode(t, old),
		ServiceAccount: kube.ServiceAccount{Namespace: "checkout", Name: "agent"},
	}
}

func own() kube.Known {
	return kube.Known{Origin: policy.OriginThisSession, SessionNamespaces: []string{"checkout"}}
}

func foreign() kube.Known {
	return kube.Known{Origin: policy.OriginPerson, SessionNamespaces: []string{"checkout"}}
}

// factsOf lists the facts that are known, "Fact=Presence", without the two that every local target has.
func factsOf(t *testing.T, req kube.Request, known kube.Known) []string {
	t.Helper()
	op, err := kube.Operation(req, known)
	if err != nil {
		t.Fatalf("Operation: %v", err)
	}
	facts := []string{}
	for _, fact := range policy.AllFacts() {
		v := op.Facts[fact]
		local := (fact == policy.Local || fact == policy.InScope) && v.Presence == policy.Present
		if v.Presence == policy.Unknown || local {
			continue
		}
		if v.Why == "" || v.Provenance < policy.Parsed {
			t.Errorf("%s has no reason or a weak provenance: %+v", fact, v)
		}
		facts = append(facts, fact.String()+"="+v.Presence.String())
	}
	return facts
}

type factCase struct {
	name        string
	what        string
	object, old string
	known       func() kube.Known
	change      func(*kube.Request)
	want        string // facts separated by spaces
}

func runFacts(t *testing.T, cases []factCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, c.what, c.object, c.old)
			if c.change != nil {
				c.change(&req)
			}
			known := foreign
			if c.known != nil {
				known = c.known
			}
			if diff := cmp.Diff(strings.Fields(c.want), factsOf(t, req, known())); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves C-2 and C-7 for scope.
func TestScope(t *testing.T) {
	inNamespace := func(namespace, name string) func(*kube.Request) {
		return func(r *kube.Request) { r.Namespace, r.Name = namespace, name }
	}
	runFacts(t, []factCase{
		{name: "a target in a namespace of the session is local and in scope", what: "CREATE configmaps", object: `{}`},
		{
			name: "a target in another namespace is outside authority", what: "CREATE configmaps", object: `{}`,
			change: inNamespace("search", "web"), want: "OutsideAuthority=Present",
		},
		{
			name: "a cluster-scoped target is left to the catalogue", what: "UPDATE nodes", object: `{}`, old: `{}`,
			change: inNamespace("", "node-1"),
		},
		{
			name: "another team's Namespace is outside authority", what: "DELETE namespaces", old: `{}`,
			change: inNamespace("search", "search"), want: "OutsideAuthority=Present",
		},
		{
			name: "a Namespace that this session made is not", what: "DELETE namespaces", old: `{}`, known: own,
			change: inNamespace("search", "search"),
		},
		{
			name: "a new Namespace is left to the catalogue", what: "CREATE namespaces", object: `{}`,
			change: inNamespace("search", "search"),
		},
	})
}

func TestTarget(t *testing.T) {
	t.Run("an update takes UID and origin along", func(t *testing.T) {
		known := foreign()
		known.LastWriter = "argocd-controller"
		op, err := kube.Operation(request(t, "UPDATE apps/deployments", `{}`, `{"metadata":{"uid":"u-1"}}`), known)
		if err != nil {
			t.Fatal(err)
		}
		want := policy.Target{
			Group: "apps", Version: "v1", Resource: "deployments", Namespace: "checkout", Name: "web", UID: "u-1",
			Origin: policy.OriginPerson, LastWriter: "argocd-controller",
		}
		if diff := cmp.Diff(want, op.Target); diff != "" {
			t.Error(diff)
		}
		if op.Stage != policy.StageExecute || op.Capability != policy.CapabilityExecuteLocal {
			t.Errorf("stage %q, capability %q", op.Stage, op.Capability)
		}
	})
	t.Run("a create has no UID, whatever the object says", func(t *testing.T) {
		op, err := kube.Operation(request(t, "CREATE configmaps", `{"metadata":{"uid":"u-1","name":"web"}}`, ""), own())
		if err != nil || op.Target.UID != "" {
			t.Errorf("UID %q, error %v", op.Target.UID, err)
		}
	})
	t.Run("a generated name is no name", func(t *testing.T) {
		long := strings.Repeat("long-", 12)
		for _, test := range []struct{ generateName, name, requestName, want string }{
			{"run-", "run-x7k2p", "", ""},
			{"run-", "run-x7k2p", "run-x7k2p", ""}, // as the API server's validating phase shows it
			{"run-", "", "", ""},
			{long, long[:58] + "x7k2p", long[:58] + "x7k2p", ""},
			{"run-", "run-admin", "run-admin", "run-admin"}, // letters that the API server does not use
			{"run-", "run-x7k2pp", "run-x7k2pp", "run-x7k2pp"},
			{"run-", "other", "other", "other"},
			{"", "run-x7k2p", "run-x7k2p", "run-x7k2p"},
		} {
			req := request(t, "CREATE batch/jobs", fmt.Sprintf(`{"metadata":{"generateName":%q,"name":%q}}`, test.generateName, test.name), "")
			req.Name = test.requestName
			op, err := kube.Operation(req, own())
			if err != nil || op.Target.Name != test.want {
				t.Errorf("%+v: name %q, error %v", test, op.Target.Name, err)
			}
		}
	})
	t.Run("a name that only the object has is taken from it", func(t *testing.T) {
		req := request(t, "CREATE batch/jobs", `{"metadata":{"name":"run"}}`, "")
		req.Name = ""
		op, err := kube.Operation(req, own())
		if err != nil || op.Target.Name != "run" {
			t.Errorf("name %q, error %v", op.Target.Name, err)
		}
	})
	t.Run("a dry run is proposed and an unnamed origin unknown", func(t *testing.T) {
		req := request(t, "CREATE configmaps", `{}`, "")
		req.DryRun = true
		op, err := kube.Operation(req, kube.Known{})
		if err != nil || op.Stage != policy.StagePropose || !op.DryRun || op.Target.Origin != policy.OriginUnknown {
			t.Errorf("%+v, error %v", op, err)
		}
	})
	t.Run("an eviction is the deletion of its pod", func(t *testing.T) {
		op, err := kube.Operation(request(t, "CREATE pods/eviction", `{}`, ""), foreign())
		if err != nil || op.Verb != policy.VerbDelete || op.Target.Subresource != "" {
			t.Errorf("%+v, error %v", op, err)
		}
	})
}

func TestMalformedRequestNamesTheField(t *testing.T) {
	cases := []struct{ name, what, object, old, want string }{
		{"a verb that admission does not send", "PATCH configmaps", `{}`, "", "operation: must be CREATE, UPDATE, DELETE or CONNECT"},
		{"a create without an object", "CREATE configmaps", "", "", "object: must be an object"},
		{"an update without the old object", "UPDATE configmaps", `{}`, "", "oldObject: must be an object"},
		{"a spec that is no object", "CREATE services", `{"spec":"x"}`, "", "object.spec: must be an object"},
		{"containers that are no list", "CREATE pods", `{"spec":{"containers":{}}}`, "", "object.spec.containers: must be a list"},
		{
			"a container that is no object", "CREATE batch/cronjobs",
			`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{},1]}}}}}}`, "",
			"object.spec.jobTemplate.spec.template.spec.containers[1]: must be an object",
		},
		{"a flag that is text", "CREATE pods", `{"spec":{"hostPID":"true"}}`, "", "object.spec.hostPID: must be a boolean"},
		{
			"replicas that are text", "UPDATE apps/deployments", `{"spec":{"replicas":"0"}}`, `{}`,
			"object.spec.replicas: must be an integer",
		},
		{"a finalizer that is no text", "UPDATE configmaps", `{"metadata":{"finalizers":[1]}}`, `{}`, "object.metadata.finalizers[0]: must be a string"},
		{"a type that is a number", "CREATE services", `{"spec":{"type":1}}`, "", "object.spec.type: must be a string"},
		{"a command that is no list", "CONNECT pods/exec", `{"command":"ls"}`, "", "object.command: must be a list"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := kube.Operation(request(t, c.what, c.object, c.old), own())
			var malformed *kube.MalformedError
			if !errors.As(err, &malformed) || err.Error() != c.want {
				t.Errorf("error %q, want %q", err, c.want)
			}
		})
	}
	t.Run("an object of another kind than the review names", func(t *testing.T) {
		req := request(t, "CREATE pods", `{"kind":"Secret"}`, "")
		req.Kind = "Pod"
		if _, err := kube.Operation(req, own()); err == nil || err.Error() != "object.kind: must be the kind that the review names" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no resource", func(t *testing.T) {
		if _, err := kube.Operation(kube.Request{Operation: "CREATE"}, own()); err == nil {
			t.Error("no error")
		}
	})
}

// Proves C-2 and C-7 for the kinds whose content decides.
func TestKinds(t *testing.T) {
	runFacts(t, []factCase{
		{name: "a ClusterIP Service is nothing special", what: "CREATE services", object: `{"spec":{"type":"ClusterIP"}}`},
		{name: "a headless Service is nothing special", what: "CREATE services", object: `{"spec":{"clusterIP":"None"}}`},
		{name: "a LoadBalancer is external", what: "CREATE services", object: `{"spec":{"type":"LoadBalancer"}}`, known: own, want: "External=Present"},
		{name: "a NodePort is external", what: "CREATE services", object: `{"spec":{"type":"NodePort"}}`, known: own, want: "External=Present"},
		{name: "an ExternalName is external", what: "CREATE services", object: `{"spec":{"type":"ExternalName"}}`, known: own, want: "External=Present"},
		{name: "a type that nobody knows is external", what: "CREATE services", object: `{"spec":{"type":"Anycast"}}`, known: own, want: "External=Present"},
		{name: "externalIPs are external", what: "CREATE services", object: `{"spec":{"externalIPs":["192.0.2.1"]}}`, known: own, want: "External=Present"},
		{
			name: "a label on a LoadBalancer changes no exposure", what: "UPDATE services", known: own,
			object: `{"metadata":{"labels":{"a":"b"}},"spec":{"type":"LoadBalancer"}}`, old: `{"spec":{"type":"LoadBalancer"}}`,
		},
		{
			name: "an annotation on a LoadBalancer can open it", what: "UPDATE services", known: own,
			object: `{"metadata":{"annotations":{"cloud.example/internal":"false"}},"spec":{"type":"LoadBalancer"}}`,
			old:    `{"metadata":{"annotations":{"cloud.example/internal":"true"}},"spec":{"type":"LoadBalancer"}}`, want: "External=Present",
		},
		{
			name: "kubectl's note to itself cannot", what: "UPDATE services", known: own,
			object: `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":{"type":"LoadBalancer"}}`,
			old:    `{"spec":{"type":"LoadBalancer"}}`,
		},
		{
			name: "a port of a LoadBalancer counts", what: "UPDATE services", known: own,
			object: `{"spec":{"type":"LoadBalancer","ports":[{"port":22}]}}`, old: `{"spec":{"type":"LoadBalancer"}}`, want: "External=Present",
		},
		{name: "a Service that stops being external is not", what: "UPDATE services", known: own, object: `{"spec":{"type":"ClusterIP"}}`, old: `{"spec":{"type":"NodePort"}}`},
		{
			name: "the selector of a foreign Service is its traffic", what: "UPDATE services",
			object: `{"spec":{"selector":{"app":"mine"}}}`, old: `{"spec":{"selector":{"app":"web"}}}`, want: "Security=Present",
		},
		{
			name: "the selector of an own Service is free", what: "UPDATE services", known: own,
			object: `{"spec":{"selector":{"app":"mine"}}}`, old: `{"spec":{"selector":{"app":"web"}}}`,
		},
		{name: "a Secret is credentials", what: "CREATE secrets", object: `{"type":"Opaque"}`, known: own, want: "Credentials=Present"},
		{name: "a deleted Secret is credentials", what: "DELETE secrets", old: `{"type":"kubernetes.io/service-account-token"}`, want: "Credentials=Present"},
		{
			name: "a token Secret escalates", what: "CREATE secrets", object: `{"type":"kubernetes.io/service-account-token"}`, known: own,
			want: "Credentials=Present EscalatesAuthority=Present",
		},
		{
			name: "a bootstrap token escalates", what: "UPDATE secrets", object: `{"type":"bootstrap.kubernetes.io/token"}`, old: `{}`, known: own,
			want: "Credentials=Present EscalatesAuthority=Present",
		},
		{name: "a token request escalates", what: "CREATE serviceaccounts/token", object: `{}`, known: own, want: "EscalatesAuthority=Present"},
		{name: "a proxy escalates", what: "CONNECT services/proxy", object: `{}`, known: own, want: "EscalatesAuthority=Present"},
		{name: "a NetworkPolicy without rules only isolates", what: "CREATE networking.k8s.io/networkpolicies", object: `{"spec":{}}`, want: "Security=Absent"},
		{name: "a NetworkPolicy with rules may loosen", what: "CREATE networking.k8s.io/networkpolicies", object: `{"spec":{"ingress":[{}]}}`, want: "Security=Present"},
		{name: "a changed NetworkPolicy may loosen", what: "UPDATE networking.k8s.io/networkpolicies", object: `{"spec":{}}`, old: `{"spec":{"ingress":[{}]}}`, known: own, want: "Security=Present"},
		{name: "a labelled NetworkPolicy does not", what: "UPDATE networking.k8s.io/networkpolicies", object: `{"spec":{},"metadata":{"labels":{"a":"b"}}}`, old: `{"spec":{}}`},
		{name: "a deleted NetworkPolicy loosens", what: "DELETE networking.k8s.io/networkpolicies", old: `{"spec":{}}`, known: own, want: "Security=Present"},
		{
			name: "the profile label of a Namespace escalates", what: "UPDATE namespaces", known: own,
			object: `{"metadata":{"labels":{"stepbeyond.dev/profile":"sandbox"}}}`, old: `{"metadata":{"labels":{"stepbeyond.dev/profile":"standard"}}}`,
			want: "EscalatesAuthority=Present",
		},
		{
			name: "its removal too", what: "UPDATE namespaces", known: own, object: `{"metadata":{}}`,
			old: `{"metadata":{"labels":{"stepbeyond.dev/profile":"standard"}}}`, want: "EscalatesAuthority=Present",
		},
		{
			name: "the server's stamp on a Namespace does not", what: "CREATE namespaces",
			object: `{"metadata":{"annotations":{"stepbeyond.dev/created-by":"x"}}}`,
		},
		{
			name: "the pod-security label of a Namespace is security", what: "UPDATE namespaces", known: own, object: `{}`,
			old: `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`, want: "Security=Present",
		},
	})
}

// Proves C-2 for deletion by proxy and for outages.
func TestUpdates(t *testing.T) {
	sts := func(replicas, policy string) string {
		return `{"metadata":{"uid":"u-1","resourceVersion":"7"},"spec":{"replicas":` + replicas +
			`,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"` + policy + `"}}}`
	}
	scale := func(replicas string) string {
		return `{"metadata":{"uid":"u-1","resourceVersion":"7"},"spec":{` + replicas + `}}`
	}
	withParent := func(parent string) func(*kube.Request) {
		return func(r *kube.Request) { r.Parent = decode(t, parent) }
	}
	runFacts(t, []factCase{
		{
			name: "a finalizer removed from an own object is deletion by proxy", what: "UPDATE acme.example/widgets", known: own,
			object: `{"metadata":{"finalizers":[]}}`, old: `{"metadata":{"finalizers":["acme.example/a"]}}`, want: "Destructive=Present",
		},
		{
			name: "a finalizer added to a foreign object holds it", what: "UPDATE configmaps",
			object: `{"metadata":{"finalizers":["acme.example/a"]}}`, old: `{}`, want: "Security=Present",
		},
		{
			name: "a finalizer added to an own object is free", what: "UPDATE configmaps", known: own,
			object: `{"metadata":{"finalizers":["acme.example/a"]}}`, old: `{}`,
		},
		{
			name: "the finalizer in the spec of a Namespace counts", what: "UPDATE namespaces/finalize", known: own,
			object: `{"spec":{}}`, old: `{"spec":{"finalizers":["kubernetes"]}}`, want: "Destructive=Present",
		},
		{
			name: "another owner is deletion by proxy", what: "UPDATE configmaps", known: own,
			object: `{"metadata":{"ownerReferences":[{"uid":"u-2"}]}}`, old: `{"metadata":{}}`, want: "Destructive=Present",
		},
		{
			name: "the same owner is not", what: "UPDATE configmaps", known: own,
			object: `{"metadata":{"ownerReferences":[{"uid":"u-2"}]}}`, old: `{"metadata":{"ownerReferences":[{"uid":"u-2"}]}}`,
		},
		{name: "a foreign workload to 0 is an outage", what: "UPDATE apps/deployments", object: `{"spec":{"replicas":0}}`, old: `{"spec":{"replicas":3}}`, want: "Destructive=Present"},
		{name: "a foreign workload that rested before is not", what: "UPDATE apps/deployments", object: `{"spec":{"replicas":0}}`, old: `{"spec":{"replicas":0}}`},
		{name: "an own workload to 0 is free", what: "UPDATE apps/deployments", known: own, object: `{"spec":{"replicas":0}}`, old: `{"spec":{"replicas":3}}`},
		{name: "a Scale that omits replicas means 0", what: "UPDATE apps/deployments/scale", object: `{"spec":{}}`, old: `{"spec":{"replicas":3}}`, want: "Destructive=Present"},
		{name: "a Scale of a custom resource counts too", what: "UPDATE acme.example/widgets/scale", object: `{"spec":{}}`, old: `{"spec":{"replicas":3}}`, want: "Destructive=Present"},
		{name: "scaling a foreign workload up is not", what: "UPDATE apps/deployments/scale", object: `{"spec":{"replicas":6}}`, old: `{"spec":{"replicas":3}}`},
		{name: "a suspended foreign Job loses its work", what: "UPDATE batch/jobs", object: `{"spec":{"suspend":true}}`, old: `{"spec":{}}`, want: "Destructive=Present"},
		{name: "a foreign Job without parallelism loses its work", what: "UPDATE batch/jobs", object: `{"spec":{"parallelism":0}}`, old: `{"spec":{"parallelism":2}}`, want: "Destructive=Present"},
		{name: "an own Job is free", what: "UPDATE batch/jobs", known: own, object: `{"spec":{"suspend":true}}`, old: `{"spec":{}}`},
		{name: "a StatefulSet that retains its claims scales down", what: "UPDATE apps/statefulsets", known: own, object: sts("1", "Retain"), old: sts("3", "Retain")},
		{name: "a StatefulSet that deletes them loses data", what: "UPDATE apps/statefulsets", known: own, object: sts("1", "Delete"), old: sts("3", "Delete"), want: "Destructive=Present"},
		{name: "also when the policy changes in the same update", what: "UPDATE apps/statefulsets", known: own, object: sts("1", "Delete"), old: sts("3", "Retain"), want: "Destructive=Present"},
		{name: "a scale of a StatefulSet that was not read is ambiguous", what: "UPDATE apps/statefulsets/scale", known: own, object: scale(`"replicas":1`), old: scale(`"replicas":3`), want: "Ambiguous=Present"},
		{
			name: "with its parent it is known", what: "UPDATE apps/statefulsets/scale", known: own, object: scale(`"replicas":1`), old: scale(`"replicas":3`),
			change: withParent(sts("3", "Retain")),
		},
		{
			name: "and what it deletes too", what: "UPDATE apps/statefulsets/scale", known: own, object: scale(``), old: scale(`"replicas":3`),
			change: withParent(sts("3", "Delete")), want: "Destructive=Present",
		},
		{
			name: "a parent of another version proves nothing", what: "UPDATE apps/statefulsets/scale", known: own, object: scale(`"replicas":1`), old: scale(`"replicas":3`),
			change: withParent(`{"metadata":{"uid":"u-1","resourceVersion":"8"},"spec":{}}`), want: "Ambiguous=Present",
		},
	})
}

// Proves C-2 for deletions, and C-4: only what the API server's own data prove makes a deletion harmless.
func TestDeletions(t *testing.T) {
	recreated := func() kube.Known {
		known := foreign()
		known.Recreated = true
		return known
	}
	grace := func(options string) func(*kube.Request) {
		return func(r *kube.Request) { r.Options = decode(t, options) }
	}
	unnamed := func(r *kube.Request) { r.Name = "" }
	runFacts(t, []factCase{
		{name: "an own Pod is left to the catalogue", what: "DELETE pods", old: `{}`, known: own},
		{name: "a foreign Pod that nothing stands in for is lost work", what: "DELETE pods", old: `{}`, want: "Destructive=Present"},
		{name: "a foreign Pod with a stand-in is a restart to be disclosed", what: "DELETE pods", old: `{}`, known: recreated, want: "Destructive=Absent MaterialAssumption=Present"},
		{name: "killed at once it is not", what: "DELETE pods", old: `{}`, known: recreated, change: grace(`{"gracePeriodSeconds":0}`), want: "Destructive=Present"},
		{name: "a grace of 30 s is the usual one", what: "DELETE pods", old: `{}`, known: recreated, change: grace(`{"gracePeriodSeconds":30}`), want: "Destructive=Absent MaterialAssumption=Present"},
		{name: "a collection of Pods is unbounded and no restart", what: "DELETE pods", old: `{}`, known: recreated, change: unnamed, want: "Destructive=Present Unbounded=Present"},
		{name: "a collection of own objects is unbounded", what: "DELETE configmaps", old: `{}`, known: own, change: unnamed, want: "Unbounded=Present"},
		{name: "an eviction with a stand-in is a restart", what: "CREATE pods/eviction", object: `{}`, known: recreated, want: "Destructive=Absent MaterialAssumption=Present"},
		{name: "an eviction at once is not", what: "CREATE pods/eviction", object: `{"deleteOptions":{"gracePeriodSeconds":0}}`, known: recreated, want: "Destructive=Present"},
		{
			name: "a StatefulSet can take its claims along", what: "DELETE apps/statefulsets", known: own,
			old: `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}`, want: "Destructive=Present",
		},
		{name: "a deletion that does not show its object is ambiguous", what: "DELETE configmaps", known: own, want: "Ambiguous=Present"},
	})
}

// Proves C-2 and C-4 for connections: one case is vouched for, everything else stays unknown.
func TestConnections(t *testing.T) {
	const harmless = "Reversible=Present External=Absent Sends=Absent Cost=Absent Credentials=Absent Security=Absent " +
		"Destructive=Absent Unbounded=Absent EscalatesAuthority=Absent ExfiltratesSecret=Absent " +
		"PersistsSensitiveMemory=Absent MaterialAssumption=Absent Ambiguous=Absent"
	runFacts(t, []factCase{
		{name: "a command in an own Pod is harmless", what: "CONNECT pods/exec", known: own, object: `{"command":["ls","-la"],"stdout":true}`, want: harmless},
		{name: "in a foreign Pod it is not known", what: "CONNECT pods/exec", object: `{"command":["ls"]}`},
		{name: "with stdin it is not known", what: "CONNECT pods/exec", known: own, object: `{"command":["sh"],"stdin":true}`},
		{name: "with a terminal it is not known", what: "CONNECT pods/exec", known: own, object: `{"command":["sh"],"tty":true}`},
		{name: "without a command it is not known", what: "CONNECT pods/exec", known: own, object: `{}`},
		{name: "attach is not known", what: "CONNECT pods/attach", known: own, object: `{"command":["ls"]}`},
		{name: "port-forward is not known", what: "CONNECT pods/portforward", known: own, object: `{"ports":[8080]}`},
	})
}
