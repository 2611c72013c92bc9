package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func TestDefaultsAreWhatTheDocumentationSays(t *testing.T) {
	for _, test := range []struct {
		name    string
		example string
		// patch is a JSON patch (RFC 6902); it may be empty.
		patch string
		path  []string
		// want is YAML.
		want string
	}{
		{
			name:    "rules of an AgentPolicy are enforced, and no number is filled in that could tighten a profile",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			path:    []string{"spec"},
			want:    `{rulesEnforcement: Enforce}`,
		},
		{
			name:    "an omitted number of a block that is present stays omitted",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			patch:   `[{"op":"add","path":"/spec/approvals","value":{"sessionUser":"Refuse"}}]`,
			path:    []string{"spec", "approvals"},
			want:    `{sessionUser: Refuse}`,
		},
		{
			name:    "a requirement needs one person",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			patch:   `[{"op":"add","path":"/spec/approvals","value":{"requirements":[{"name":"one-person"}]}}]`,
			path:    []string{"spec", "approvals"},
			want:    `{requirements: [{name: one-person, required: 1}]}`,
		},
		{
			name:    "a session follows its workload and lives 48 hours",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			patch: `[{"op":"add","path":"/spec/sessionTemplates","value":[{"name":"agent","serviceAccountName":"agent",
				"user":{"source":"PodAnnotation"},"authority":{"stages":["execute"],"capabilities":["execute_local"]}}]}]`,
			path: []string{"spec", "sessionTemplates"},
			want: `[{name: agent, serviceAccountName: agent, lifetime: Workload, maxAgeSeconds: 172800,
				user: {source: PodAnnotation}, authority: {stages: [execute], capabilities: [execute_local]}}]`,
		},
		{
			name:    "a ClusterAgentPolicy gets nothing that it does not state",
			example: "testdata/clusteragentpolicy/valid/minimal.yaml",
			path:    []string{"spec"},
			want: `{baselineVersion: v1,
				governed: {namespaceSelector: {matchLabels: {stepbeyond.dev/profile: standard}}}}`,
		},
		{
			name:    "a rule takes its enforcement from its object, not from the schema",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			patch: `[{"op":"add","path":"/spec/rules","value":[{"name":"ask-jobs","class":"ASK",
				"match":{"kubernetes":[{"groups":["batch"],"resources":["jobs"],"verbs":["create"]}]}}]}]`,
			path: []string{"spec", "rules"},
			want: `[{name: ask-jobs, class: ASK,
				match: {kubernetes: [{groups: [batch], resources: [jobs], verbs: [create]}]}}]`,
		},
		{
			name:    "a session gets nothing that it does not state",
			example: "testdata/agentsession/valid/from-pod.yaml",
			path:    []string{"spec", "authority"},
			want:    `{stages: [understand, propose], capabilities: [read_context, execute_local]}`,
		},
		{
			name:    "a grant has a list of answers to append to",
			example: "testdata/permissiongrant/valid/exec.yaml",
			path:    []string{"spec", "decisions"},
			want:    `[]`,
		},
		{
			name:    "a null is an omission",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			patch:   `[{"op":"add","path":"/spec/rulesEnforcement","value":null},{"op":"add","path":"/spec/initiative","value":null}]`,
			path:    []string{"spec"},
			want:    `{rulesEnforcement: Enforce}`,
		},
		{
			name:    "a create sets no status",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			patch:   `[{"op":"add","path":"/status","value":{"sessions":3}}]`,
			path:    []string{"spec"},
			want:    `{rulesEnforcement: Enforce}`,
		},
		{
			name:    "the namespace of an object without namespaces is dropped",
			example: "testdata/clusteragentpolicy/valid/minimal.yaml",
			patch:   `[{"op":"add","path":"/metadata/namespace","value":"checkout"}]`,
			path:    []string{"spec", "baselineVersion"},
			want:    `v1`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := load(t, test.example)
			if test.patch != "" {
				object = patched(t, object, test.patch)
			}
			offline := object.DeepCopy()
			if err := k8s.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			expectSame(t, object, offline)
			expectField(t, object, test.path, test.want)
		})
	}
}

func TestAnAnswerIsExactUnlessItSaysOtherwise(t *testing.T) {
	object := patched(t, create(t, "testdata/permissiongrant/valid/delete-volume-claim.yaml"),
		`[{"op":"add","path":"/spec/decisions/-","value":`+answer+`}]`)
	if err := k8s.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	expectField(t, object, []string{"spec", "decisions"}, `[{approver: ben@acme.example, verdict: Approve, scope: {type: Exact},
		shownDigest: "v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}]`)
}

// expectField compares one field with YAML.
func expectField(t *testing.T, object *unstructured.Unstructured, path []string, want string) {
	t.Helper()
	got, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		t.Fatalf("%v: found %v, error %v", path, found, err)
	}
	gotYAML, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var wanted any
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	wantYAML, err := yaml.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(wantYAML), string(gotYAML)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", path, diff)
	}
}
