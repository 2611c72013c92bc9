package crd_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	immutable  = "is immutable: open another session"
	appendOnly = "are append-only: earlier answers can neither change nor go"
	answer     = `{"approver":"ben@acme.example","verdict":"Approve",
		"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}`
	denial = `{"approver":"carla@acme.example","verdict":"Deny","reason":"Not today.",
		"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}`
)

// transition is one change of an object that exists. An empty want means that it is accepted.
type transition struct {
	name string
	// before is a JSON patch that brings the example into the state that the change starts from; it may be empty.
	before string
	patch  string
	want   cause
}

func expectTransitions(t *testing.T, example string, transitions []transition) {
	t.Helper()
	for _, tr := range transitions {
		t.Run(tr.name, func(t *testing.T) {
			object := create(t, example)
			if tr.before != "" {
				object = patched(t, object, tr.before)
				if err := k8s.Update(t.Context(), object); err != nil {
					t.Fatalf("prepare: %v", err)
				}
			}
			err := k8s.Update(t.Context(), patched(t, object, tr.patch))
			if tr.want != (cause{}) {
				expectCause(t, err, tr.want)
			} else if err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// create stores an example for the length of a test.
func create(t *testing.T, example string) *unstructured.Unstructured {
	t.Helper()
	object := load(t, example)
	object.SetName("")
	object.SetGenerateName("transition-")
	if err := k8s.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context is done when cleanups run.
		if err := k8s.Delete(context.WithoutCancel(t.Context()), object); err != nil {
			t.Error(err)
		}
	})
	return object
}

func TestAgentSessionsAreImmutable(t *testing.T) {
	expectTransitions(t, "testdata/agentsession/valid/opened-by-person.yaml", []transition{
		{
			name:  "the identity stays",
			patch: `[{"op":"replace","path":"/spec/identity/serviceAccountName","value":"other"}]`,
			want:  cause{"spec.identity", immutable},
		},
		{
			name:  "a session of all pods does not become one of a workload",
			patch: `[{"op":"add","path":"/spec/identity/rootOwner","value":{"kind":"Job","name":"a","uid":"b"}}]`,
			want:  cause{"spec.identity", immutable},
		},
		{
			name:  "the user stays",
			patch: `[{"op":"replace","path":"/spec/userName","value":"ben@acme.example"}]`,
			want:  cause{"spec.userName", immutable},
		},
		{
			name:  "the tier stays",
			patch: `[{"op":"replace","path":"/spec/modelTier","value":"small"}]`,
			want:  cause{"spec.modelTier", immutable},
		},
		{
			name:  "the mode stays",
			patch: `[{"op":"replace","path":"/spec/initiativeMode","value":"exploratory"}]`,
			want:  cause{"spec.initiativeMode", immutable},
		},
		{
			name:  "the adapter stays",
			patch: `[{"op":"replace","path":"/spec/adapter/version","value":"3.0.0"}]`,
			want:  cause{"spec.adapter", immutable},
		},
		{
			name:  "the adapter does not go",
			patch: `[{"op":"remove","path":"/spec/adapter"}]`,
			want:  cause{"spec.adapter", immutable},
		},
		{
			name:  "no stage is added",
			patch: `[{"op":"add","path":"/spec/authority/stages/-","value":"publish"}]`,
			want:  cause{"spec.authority.stages", immutable},
		},
		{
			name:  "no capability is added",
			patch: `[{"op":"add","path":"/spec/authority/capabilities/-","value":"publish_external"}]`,
			want:  cause{"spec.authority.capabilities", immutable},
		},
		{
			name:  "authority over objects is not widened",
			patch: `[{"op":"replace","path":"/spec/authority/kubernetes/0/resources","value":["*"]}]`,
			want:  cause{"spec.authority.kubernetes", immutable},
		},
		{
			name:  "authority over objects is not widened by leaving it out",
			patch: `[{"op":"remove","path":"/spec/authority/kubernetes"}]`,
			want:  cause{"spec.authority.kubernetes", immutable},
		},
		{
			name:  "a budget does not grow",
			patch: `[{"op":"replace","path":"/spec/authority/budgets/maxMutations","value":21}]`,
			want:  cause{"spec.authority.budgets.maxMutations", "may only shrink"},
		},
		{
			name:  "a budget does not grow by leaving it out",
			patch: `[{"op":"remove","path":"/spec/authority/budgets/maxMutations"}]`,
			want:  cause{"spec.authority.budgets.maxMutations", "may only shrink"},
		},
		{
			name:  "children are not added",
			patch: `[{"op":"replace","path":"/spec/authority/budgets/maxChildSessions","value":1}]`,
			want:  cause{"spec.authority.budgets.maxChildSessions", "may only shrink"},
		},
		{
			name:  "a budget shrinks",
			patch: `[{"op":"replace","path":"/spec/authority/budgets/maxMutations","value":0}]`,
		},
		{
			name:  "the deadline moves",
			patch: `[{"op":"replace","path":"/spec/deadlineTime","value":"2126-11-30T19:00:00Z"}]`,
		},
		{
			name:  "labels change",
			patch: `[{"op":"replace","path":"/metadata/labels/change","value":"INC-4413"}]`,
		},
	})
	expectTransitions(t, "testdata/agentsession/valid/from-pod.yaml", []transition{
		{
			name:  "an adapter does not appear",
			patch: `[{"op":"add","path":"/spec/adapter","value":{"name":"kubectl"}}]`,
			want:  cause{"spec.adapter", immutable},
		},
		{
			name:  "authority without a budget gets one",
			patch: `[{"op":"add","path":"/spec/authority/budgets","value":{"maxMutations":5}}]`,
		},
	})
}

func TestPermissionGrantsKeepTheirHistory(t *testing.T) {
	expectTransitions(t, "testdata/permissiongrant/valid/delete-volume-claim.yaml", []transition{
		{
			name:  "the question stays",
			patch: `[{"op":"replace","path":"/spec/request/operation/target/name","value":"data-postgres-1"}]`,
			want:  cause{"spec.request", "is immutable: another operation is another question"},
		},
		{
			name:  "a question is not made easier",
			patch: `[{"op":"remove","path":"/spec/request/requirements/1"}]`,
			want:  cause{"spec.request", "is immutable: another operation is another question"},
		},
		{
			name:  "the agent's comment stays",
			patch: `[{"op":"replace","path":"/spec/requesterComment","value":"Please."}]`,
			want:  cause{"spec.requesterComment", "is set once"},
		},
		{
			name:  "an answer is appended",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":` + answer + `}]`,
		},
		{
			name:   "a second answer is appended",
			before: `[{"op":"add","path":"/spec/decisions/-","value":` + answer + `}]`,
			patch:  `[{"op":"add","path":"/spec/decisions/-","value":` + denial + `}]`,
		},
		{
			name:   "an answer does not go",
			before: `[{"op":"add","path":"/spec/decisions/-","value":` + denial + `}]`,
			patch:  `[{"op":"remove","path":"/spec/decisions/0"}]`,
			want:   cause{"spec.decisions", appendOnly},
		},
		{
			name:   "the list of answers does not go",
			before: `[{"op":"add","path":"/spec/decisions/-","value":` + denial + `}]`,
			patch:  `[{"op":"remove","path":"/spec/decisions"}]`,
			want:   cause{"spec.decisions", appendOnly},
		},
		{
			// Proves G-4.
			name:   "a denial does not become an approval",
			before: `[{"op":"add","path":"/spec/decisions/-","value":` + denial + `}]`,
			patch:  `[{"op":"replace","path":"/spec/decisions/0/verdict","value":"Approve"}]`,
			want:   cause{"spec.decisions", appendOnly},
		},
		{
			name:   "an answer is not put in front of another",
			before: `[{"op":"add","path":"/spec/decisions/-","value":` + denial + `}]`,
			patch:  `[{"op":"add","path":"/spec/decisions/0","value":` + answer + `}]`,
			want:   cause{"spec.decisions", appendOnly},
		},
		{
			name:  "an answer without the digest that was shown",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve"}}]`,
			want:  cause{"spec.decisions[0].shownDigest", "Required value"},
		},
		{
			name:  "an answer with a shortened digest",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","shownDigest":"v1:faf78c6d"}}]`,
			want:  cause{"spec.decisions[0].shownDigest", "must be the full digest that was shown: v1: and 64 hexadecimal digits"},
		},
		{
			name:  "an answer that is neither yes nor no",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Maybe","shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}}]`,
			want:  cause{"spec.decisions[0].verdict", `supported values: "Approve", "Deny"`},
		},
		{
			name: "an answer for everything",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","scope":{"type":"Everything"},
				"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}}]`,
			want: cause{"spec.decisions[0].scope.type", `supported values: "Exact", "Session", "TimeBoxed"`},
		},
		{
			name: "a time box without an end",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","scope":{"type":"TimeBoxed"},
				"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}}]`,
			want: cause{"spec.decisions[0].scope.durationSeconds", "is what a TimeBoxed approval needs, and no other has"},
		},
		{
			name: "an end of an answer for the session",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","scope":{"type":"Session","durationSeconds":60},
				"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}}]`,
			want: cause{"spec.decisions[0].scope.durationSeconds", "is what a TimeBoxed approval needs, and no other has"},
		},
		{
			name: "two uses of an exact answer",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","scope":{"type":"Exact","uses":2},
				"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}}]`,
			want: cause{"spec.decisions[0].scope.uses", "an Exact approval has one use"},
		},
		{
			name: "every name",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","scope":{"type":"TimeBoxed","durationSeconds":60,"match":{"name":"*"}},
				"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}}]`,
			want: cause{"spec.decisions[0].scope.match.name", `Invalid value: "*": must be lower-case letters, digits, - and . with * as wildcard, and begin with a letter or digit`},
		},
		{
			name: "an answer under policies without an identity",
			patch: `[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","policyIdentity":"latest",
				"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}}]`,
			want: cause{"spec.decisions[0].policyIdentity", "must be v1: and 64 hexadecimal digits"},
		},
		{
			name:  "a grant is revoked",
			patch: `[{"op":"add","path":"/spec/revocation","value":{"reason":"Wrong volume."}}]`,
		},
		{
			name:  "a revocation without a reason",
			patch: `[{"op":"add","path":"/spec/revocation","value":{}}]`,
			want:  cause{"spec.revocation.reason", "Required value"},
		},
		{
			name:   "a revocation stays",
			before: `[{"op":"add","path":"/spec/revocation","value":{"reason":"Wrong volume."}}]`,
			patch:  `[{"op":"remove","path":"/spec/revocation"}]`,
			want:   cause{"spec.revocation", "is set once: a revoked grant stays revoked"},
		},
		{
			name:   "a revocation is not rewritten",
			before: `[{"op":"add","path":"/spec/revocation","value":{"reason":"Wrong volume."}}]`,
			patch:  `[{"op":"replace","path":"/spec/revocation/reason","value":"Right volume."}]`,
			want:   cause{"spec.revocation", "is set once: a revoked grant stays revoked"},
		},
	})
	expectTransitions(t, "testdata/permissiongrant/valid/exec.yaml", []transition{
		{
			name:  "a comment is added later",
			patch: `[{"op":"add","path":"/spec/requesterComment","value":"Only looking at open ports."}]`,
		},
	})
}

// The patch that status.approveCommand prints must work on a grant that was stored without any answer.
func TestTheFirstAnswerCanBeAppendedByAJSONPatch(t *testing.T) {
	object := create(t, "testdata/permissiongrant/valid/exec.yaml")
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/decisions/-","value":`+answer+`}]`))
	if err := k8s.Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
	decisions, _, err := unstructured.NestedSlice(object.Object, "spec", "decisions")
	if err != nil || len(decisions) != 1 {
		t.Errorf("got %d answers (%v), want 1", len(decisions), err)
	}
}

func TestBadStatusIsRefused(t *testing.T) {
	const attempt = `{"reviewUID":"1","time":"2026-11-30T18:40:11Z"}`
	for _, test := range []struct {
		name    string
		example string
		// status is JSON.
		status string
		want   cause
	}{
		{
			name:    "a grant in a state that does not exist",
			example: "testdata/permissiongrant/valid/exec.yaml",
			status:  `{"state":"Used"}`,
			want:    cause{"status.state", `"Revoked", "Superseded", "Stale", "Exhausted"`},
		},
		{
			name:    "an approval under policies without an identity",
			example: "testdata/permissiongrant/valid/exec.yaml",
			status:  `{"boundPolicyIdentity":"latest"}`,
			want:    cause{"status.boundPolicyIdentity", "must be v1: and 64 hexadecimal digits"},
		},
		{
			name:    "more uses than an answer can give",
			example: "testdata/permissiongrant/valid/exec.yaml",
			status:  `{"usesLeft":101}`,
			want:    cause{"status.usesLeft", "should be less than or equal to 100"},
		},
		{
			name:    "a use without an attempt",
			example: "testdata/permissiongrant/valid/exec.yaml",
			status:  `{"uses":[{"index":1,"outcome":"Reserved","attempts":[],"reservedTime":"2026-11-30T18:40:11Z"}]}`,
			want:    cause{"status.uses[0].attempts", "should have at least 1 items"},
		},
		{
			name:    "a use with nine attempts",
			example: "testdata/permissiongrant/valid/exec.yaml",
			status: `{"uses":[{"index":1,"outcome":"Reserved","reservedTime":"2026-11-30T18:40:11Z",
				"attempts":[` + strings.Repeat(attempt+",", 8) + attempt + `]}]}`,
			want: cause{"status.uses[0].attempts", "must have at most 8 items"},
		},
		{
			name:    "a session in an epoch before the first",
			example: "testdata/agentsession/valid/from-pod.yaml",
			status:  `{"epoch":0}`,
			want:    cause{"status.epoch", "should be greater than or equal to 1"},
		},
		{
			name:    "a guarantee that does not exist",
			example: "testdata/agentsession/valid/from-pod.yaml",
			status:  `{"guarantee":"RuntimeBacked"}`,
			want:    cause{"status.guarantee", `supported values: "prompt-only", "runtime-backed", "verified"`},
		},
		{
			name:    "enforcement that is perhaps in force",
			example: "testdata/clusteragentpolicy/valid/minimal.yaml",
			status:  `{"enforcement":{"webhook":"Unknown","floor":"InForce","floorPolicies":3}}`,
			want:    cause{"status.enforcement.webhook", `supported values: "InForce", "Repairing", "Lost"`},
		},
		{
			name:    "a rule that is compiled to nothing",
			example: "testdata/agentpolicy/valid/minimal.yaml",
			status:  `{"ruleStatuses":[{"name":"a","compiledTo":"None"}]}`,
			want:    cause{"status.ruleStatuses[0].compiledTo", `supported values: "AdmissionPolicy", "InProcess"`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := patched(t, create(t, test.example), `[{"op":"add","path":"/status","value":`+test.status+`}]`)
			expectCause(t, k8s.Status().Update(t.Context(), object), test.want)
		})
	}
}

// A write of status never changes spec, and a write of spec never changes status.
func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	object := create(t, "testdata/permissiongrant/valid/exec.yaml")
	object = patched(t, object, `[{"op":"add","path":"/status","value":{"state":"Approved"}},
		{"op":"add","path":"/spec/revocation","value":{"reason":"Wrong pod."}}]`)
	if err := k8s.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	state, _, _ := unstructured.NestedString(object.Object, "status", "state")
	if _, revoked, _ := unstructured.NestedMap(object.Object, "spec", "revocation"); state != "Approved" || revoked {
		t.Errorf("after a write of status: state %q, revoked %v; want Approved, false", state, revoked)
	}
	object = patched(t, object, `[{"op":"replace","path":"/status/state","value":"Denied"},
		{"op":"add","path":"/spec/revocation","value":{"reason":"Wrong pod."}}]`)
	if err := k8s.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	state, _, _ = unstructured.NestedString(object.Object, "status", "state")
	if _, revoked, _ := unstructured.NestedMap(object.Object, "spec", "revocation"); state != "Approved" || !revoked {
		t.Errorf("after a write of spec: state %q, revoked %v; want Approved, true", state, revoked)
	}
}
