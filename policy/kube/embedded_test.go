package kube_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// embedded are forms in which custom resources hold a pod spec.
var embedded = map[string]string{
	"a Rollout or Knative Service": `{"spec":{"template":{"metadata":{},"spec":%s}}}`,
	"a training job":               `{"spec":{"replicaSpecs":{"Worker":{"replicas":2,"template":{"spec":%s}}}}}`,
	"a JobSet":                     `{"spec":{"replicatedJobs":[{"name":"a","template":{"spec":{"template":{"spec":%s}}}}]}}`,
	"a sandbox":                    `{"spec":{"podTemplate":{"spec":%s}}}`,
	"a spec that is one itself":    `{"spec":%s}`,
	"an object inside an object":   `{"objects":[{"spec":%s}]}`,
}

// Proves C-2, C-7: what a controller makes a pod of is judged as the pod would be.
func TestPodSpecsInCustomResourcesAreJudgedAsPods(t *testing.T) {
	const (
		escalates = "EscalatesAuthority=Present"
		security  = "Security=Present"
	)
	for form, text := range embedded {
		object := func(spec string) string { return fmt.Sprintf(text, spec) }
		create := func(name, spec, want string) factCase {
			return factCase{name: name + " in " + form, what: "CREATE acme.example/widgets", known: own, object: object(spec), want: want}
		}
		privileged := `{"containers":[{"name":"a","image":"a:1","securityContext":{"privileged":true}}]}`
		runFacts(t, []factCase{
			create("an ordinary pod", `{"containers":[{"name":"a","image":"a:1","ports":[{"containerPort":80}]}],"volumes":[{"name":"v","emptyDir":{}}]}`, ""),
			create("the agent's own ServiceAccount", `{"serviceAccountName":"agent","containers":[{"name":"a","image":"a:1"}]}`, security),
			create("another ServiceAccount", `{"serviceAccountName":"admin","containers":[{"name":"a","image":"a:1"}]}`, escalates),
			create("the node's network", `{"hostNetwork":true,"containers":[{"name":"a","image":"a:1"}]}`, escalates),
			create("a path of the node", `{"containers":[{"name":"a","image":"a:1"}],"volumes":[{"name":"v","hostPath":{"path":"/"}}]}`, escalates),
			create("a privileged container", privileged, escalates),
			create("a container whose image is filled in", `{"containers":[{"securityContext":{"privileged":true}}]}`, escalates),
			create("a privileged init container alone", `{"initContainers":[{"name":"a","image":"a:1","securityContext":{"privileged":true}}]}`, escalates),
			create("an added capability", `{"containers":[{"name":"a","image":"a:1","securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]}`, escalates),
			create("a foreign Secret", `{"containers":[{"name":"a","image":"a:1","envFrom":[{"secretRef":{"name":"db"}}]}]}`, "Credentials=Present"),
			create("a claim that is not the session's", `{"containers":[{"name":"a","image":"a:1"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"db"}}]}`, "Destructive=Present"),
			create("a chosen node", `{"nodeName":"node-1","containers":[{"name":"a","image":"a:1"}]}`, security),
			create("a pod that cannot be read", `{"hostNetwork":"{{yes}}","containers":[{"name":"a","image":"a:1"}]}`, "Ambiguous=Present"),
			{name: "an update that leaves " + form + " alone", what: "UPDATE acme.example/widgets", known: own, object: object(privileged), old: object(privileged)},
			{name: "an update to a privileged pod in " + form, what: "UPDATE acme.example/widgets", known: own, object: object(privileged), old: object(`{"containers":[{"name":"a","image":"a:1"}]}`), want: escalates},
			{
				name: "another image where a Secret was read before in a foreign " + form, what: "UPDATE acme.example/widgets", want: "Credentials=Present",
				object: object(`{"containers":[{"name":"a","image":"a:2","envFrom":[{"secretRef":{"name":"db"}}]}]}`),
				old:    object(`{"containers":[{"name":"a","image":"a:1","envFrom":[{"secretRef":{"name":"db"}}]}]}`),
			},
		})
	}
}

// Proves C-2, C-7.
func TestWhatCustomResourcesMakeControllersDo(t *testing.T) {
	const (
		escalates = "EscalatesAuthority=Present"
		security  = "Security=Present"
	)
	const step = `{"spec":{"steps":[{"name":"a","image":"a:1","script":"make",%s}]}}`
	const workflow = `{"spec":{%s,"templates":[{"name":"a","container":{"image":"a:1","command":["make"]}}]}}`
	const what, update = "CREATE acme.example/widgets", "UPDATE acme.example/widgets"
	manifest := func(version, kind string) string {
		return fmt.Sprintf(`{"spec":{"manifest":{"apiVersion":%q,"kind":%q,"metadata":{"name":"a"}}}}`, version, kind)
	}
	runFacts(t, []factCase{
		{name: "an ordinary step is free", what: what, known: own, object: fmt.Sprintf(step, `"env":[{"name":"A","value":"1"}]`)},
		{name: "a privileged step escalates", what: what, known: own, object: fmt.Sprintf(step, `"securityContext":{"privileged":true}`), want: escalates},
		{name: "a step that reads a Secret", what: what, known: own, object: fmt.Sprintf(step, `"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"db"}}}]`), want: "Credentials=Present"},
		{name: "a step that stays as it was", what: update, known: own, object: fmt.Sprintf(step, `"securityContext":{"privileged":true}`), old: fmt.Sprintf(step, `"securityContext":{"privileged":true}`)},
		{name: "an ordinary workflow is free", what: what, known: own, object: fmt.Sprintf(workflow, `"entrypoint":"main"`)},
		{name: "a workflow under the agent's own ServiceAccount", what: what, known: own, object: fmt.Sprintf(workflow, `"serviceAccountName":"agent"`), want: "Security=Present"},
		{name: "a workflow under another ServiceAccount", what: what, known: own, object: fmt.Sprintf(workflow, `"serviceAccountName":"admin"`), want: security},
		{name: "a workflow in the node's network", what: what, known: own, object: fmt.Sprintf(workflow, `"hostNetwork":true`), want: security},
		{name: "a workflow with a path of the node", what: what, known: own, object: fmt.Sprintf(workflow, `"volumes":[{"hostPath":{"path":"/"}}]`), want: security},
		{name: "volumes of another form are free", what: what, known: own, object: fmt.Sprintf(workflow, `"volumes":[{"containerDisk":{"image":"a:1"}}]`)},
		{name: "a field that only has such a name is free", what: what, known: own, object: `{"spec":{"volumes":3,"securityContext":"strict","image":"a:1","env":{"A":"1"}}}`},
		{name: "an object that another controller is to write", what: what, known: own, object: manifest("apps/v1", "Deployment"), want: security},
		{name: "a binding that another controller is to write", what: what, known: own, object: manifest("rbac.authorization.k8s.io/v1", "RoleBinding"), want: escalates},
		{name: "an object of ours that another controller is to write", what: what, known: own, object: manifest("stepbeyond.dev/v1alpha1", "AgentPolicy"), want: escalates},
		{name: "an object that stays as it was", what: update, known: own, object: manifest("rbac.authorization.k8s.io/v1", "RoleBinding"), old: manifest("rbac.authorization.k8s.io/v1", "RoleBinding")},
		{name: "a claim that comes with a workload is free", what: what, known: own, object: `{"spec":{"volumeClaimTemplates":[{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"}}]}}`},
		{name: "a reference is no object", what: what, known: own, object: `{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`},
		{name: "a key of ours for what is made of it", what: what, known: own, object: `{"spec":{"podLabels":{"stepbeyond.dev/user":"x"}}}`, want: escalates},
		{name: "a forged lineage in a template", what: what, known: own, object: `{"spec":{"template":{"metadata":{"annotations":{"stepbeyond.dev/template-writer":"a/b"}},"spec":{"containers":[{"name":"a","image":"a:1"}]}}}}`, want: escalates},
		{name: "a key of ours in a selector is free", what: what, known: own, object: `{"spec":{"endpointSelector":{"matchLabels":{"stepbeyond.dev/user":"x"}}}}`},
		{name: "a stored template of a StatefulSet is judged too", what: "CREATE apps/controllerrevisions", known: own, object: `{"data":{"spec":{"template":{"spec":{"containers":[{"name":"a","securityContext":{"privileged":true}}]}}}}}`, want: escalates},
		{name: "a Scale of a custom resource is free", what: "UPDATE acme.example/widgets/scale", known: own, object: `{"spec":{"replicas":2}}`, old: `{"spec":{"replicas":1}}`},
	})
}

func TestASearchIsBounded(t *testing.T) {
	object, _ := nested(100)
	req := request(t, "CREATE acme.example/widgets", "", "")
	req.Object = object
	if diff := cmp.Diff([]string{"Ambiguous=Present"}, factsOf(t, req, own())); diff != "" {
		t.Errorf("facts of what is nested too deep (-want +got):\n%s", diff)
	}
	shallow, _ := nested(60)
	req.Object = shallow
	if diff := cmp.Diff([]string{}, factsOf(t, req, own())); diff != "" {
		t.Errorf("facts of what is nested a little (-want +got):\n%s", diff)
	}
}

func TestRulesSeeThePodsOfCustomResources(t *testing.T) {
	req := request(t, "CREATE acme.example/widgets", `{"spec":{
		"tasks":[{"step":{"image":"step:1","command":["a"]}}],
		"template":{"spec":{"serviceAccountName":"agent","initContainers":[{"image":"init:1"}],"containers":[{"name":"a","image":"main:1"}]}}}}`, "")
	op, err := kube.Operation(req, own())
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.PodTemplate{{ServiceAccountName: "agent", Images: []string{"init:1", "main:1"}}, {Images: []string{"step:1"}}}
	if diff := cmp.Diff(want, op.Kubernetes.PodTemplates); diff != "" {
		t.Errorf("pod templates (-want +got):\n%s", diff)
	}
}

func TestClaimsOfCustomResources(t *testing.T) {
	const mounting = `{"spec":{"template":{"spec":{"containers":[{"image":"a:1"}],"volumes":[{"persistentVolumeClaim":{"claimName":"db"}}]}}}}`
	created, kept := request(t, "CREATE acme.example/widgets", mounting, ""), request(t, "UPDATE acme.example/widgets", mounting, mounting)
	want := []kube.Claim{{Name: "db"}}
	if diff := cmp.Diff(want, kube.ClaimsOf(created, policy.OriginUnknown)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if got := kube.ClaimsOf(kept, policy.OriginPerson); got != nil {
		t.Errorf("claims of an update that changes nothing: %v", got)
	}
	known := own()
	known.OwnClaims = []string{"db"}
	if diff := cmp.Diff([]string{}, factsOf(t, created, known)); diff != "" {
		t.Errorf("facts with an own claim (-want +got):\n%s", diff)
	}
}
