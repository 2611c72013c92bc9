package crd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"stepbeyond.dev/stepbeyond/internal/policytest/crdschema"
)

// refusal is one bad change of a valid example, and what the API server must say to it.
type refusal struct {
	name string
	// patch is a JSON patch (RFC 6902).
	patch string
	want  cause
}

// cause is the path of the bad field and the end of the message, which is the part written for people.
type cause struct{ Field, Message string }

// expectRefusals creates the example once per change. What a policy test says without a cluster must be the same, word by
// word.
func expectRefusals(t *testing.T, example string, refusals []refusal) {
	t.Helper()
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			object := patched(t, load(t, example), r.patch)
			offline := object.DeepCopy()
			err := k8s.Create(t.Context(), object, client.DryRunAll)
			expectCause(t, err, r.want)
			if diff := cmp.Diff(causes(t, err), admit(t, offline)); diff != "" {
				t.Errorf("refusal without a cluster (-API server +offline):\n%s", diff)
			}
		})
	}
}

// notChecked is the note that the API server adds when a structural error keeps it from running CEL rules.
const notChecked = "some validation rules were not checked because the object was invalid"

// expectCause wants exactly one cause beside that note.
func expectCause(t *testing.T, err error, want cause) {
	t.Helper()
	got := causes(t, err)
	for i := range got {
		if strings.HasSuffix(got[i].Message, want.Message) {
			got[i].Message = want.Message
		}
	}
	if diff := cmp.Diff([]cause{want}, got); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// causes are those of an Invalid error without that note.
func causes(t *testing.T, err error) []cause {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonInvalid {
		t.Fatalf("want an Invalid error, got %v", err)
	}
	var found []cause
	for _, c := range status.Status().Details.Causes {
		if !strings.Contains(c.Message, notChecked) {
			found = append(found, cause{c.Field, c.Message})
		}
	}
	return found
}

// admit creates the object without a cluster: it completes it and returns what it is refused for.
func admit(t *testing.T, object *unstructured.Unstructured) []cause {
	t.Helper()
	kind, err := crdschema.Of(object.GroupVersionKind())
	if err != nil || kind == nil {
		t.Fatalf("no schema of %s: %v", object.GroupVersionKind(), err)
	}
	var found []cause
	for _, problem := range kind.Admit(object.Object) {
		found = append(found, cause{problem.Field, problem.ErrorBody()})
	}
	return found
}

func patched(t *testing.T, object *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	t.Helper()
	before, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch([]byte(patch))
	if err != nil {
		t.Fatalf("patch %s: %v", patch, err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatalf("patch %s: %v", patch, err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(after); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	singleLine = "must be a single line without control characters"
	dnsName    = "must be lower-case letters, digits and -"
	lastStar   = `"*" stands alone or once at the end, as in ledger-*`
)

func TestBadClusterAgentPoliciesAreRefused(t *testing.T) {
	expectRefusals(t, "testdata/clusteragentpolicy/valid/platform.yaml", []refusal{
		{
			name:  "a policy without a pinned baseline",
			patch: `[{"op":"remove","path":"/spec/baselineVersion"}]`,
			want:  cause{"spec.baselineVersion", "Required value"},
		},
		{
			name:  "a baseline version that is not v and a number",
			patch: `[{"op":"replace","path":"/spec/baselineVersion","value":"2026.11"}]`,
			want:  cause{"spec.baselineVersion", "must be v and a number, as in v1"},
		},
		{
			name:  "a policy that does not say whom it governs",
			patch: `[{"op":"remove","path":"/spec/governed"}]`,
			want:  cause{"spec.governed", "Required value"},
		},
		{
			name:  "an empty namespace selector, which would govern the cluster",
			patch: `[{"op":"replace","path":"/spec/governed/namespaceSelector","value":{}}]`,
			want:  cause{"spec.governed.namespaceSelector", "must not be empty: an empty selector would govern every namespace of the cluster"},
		},
		{
			name:  "a namespace selector with empty lists, which is an empty one",
			patch: `[{"op":"replace","path":"/spec/governed/namespaceSelector","value":{"matchLabels":{},"matchExpressions":[]}}]`,
			want:  cause{"spec.governed.namespaceSelector", "must not be empty: an empty selector would govern every namespace of the cluster"},
		},
		{
			name: "a namespace selector of 17 labels",
			patch: `[{"op":"replace","path":"/spec/governed/namespaceSelector","value":{"matchLabels":{"a":"","b":"","c":"","d":"",
				"e":"","f":"","g":"","h":"","i":"","j":"","k":"","l":"","m":"","n":"","o":"","p":"","q":""}}}]`,
			want: cause{"spec.governed.namespaceSelector", "at most 16 labels and 16 expressions"},
		},
		{
			name:  "a governed user of Kubernetes itself",
			patch: `[{"op":"replace","path":"/spec/governed/users/0/name","value":"system:kube-scheduler"}]`,
			want:  cause{"spec.governed.users[0].name", "must not start with system: (Kubernetes' own identities are never governed, ServiceAccounts are governed by their namespace)"},
		},
		{
			name:  "a governed user without a namespace for sessions",
			patch: `[{"op":"remove","path":"/spec/governed/users/0/sessionNamespace"}]`,
			want:  cause{"spec.governed.users[0].sessionNamespace", "Required value"},
		},
		{
			name:  "an exemption for every account of a namespace",
			patch: `[{"op":"replace","path":"/spec/governed/exemptServiceAccounts/0/name","value":"*"}]`,
			want:  cause{"spec.governed.exemptServiceAccounts[0].name", "must be one exact name, without *"},
		},
		{
			name:  "an exemption without a reason",
			patch: `[{"op":"remove","path":"/spec/governed/exemptServiceAccounts/0/reason"}]`,
			want:  cause{"spec.governed.exemptServiceAccounts[0].reason", "Required value"},
		},
		{
			name:  "a release without a reason",
			patch: `[{"op":"remove","path":"/spec/governed/released/0/reason"}]`,
			want:  cause{"spec.governed.released[0].reason", "Required value"},
		},
		{
			name:  "an approver in every namespace",
			patch: `[{"op":"replace","path":"/spec/serviceAccountApprovers/0/namespace","value":"*"}]`,
			want:  cause{"spec.serviceAccountApprovers[0].namespace", "must be one exact namespace, without *"},
		},
		{
			name:  "a profile name that cannot be the value of a label",
			patch: `[{"op":"replace","path":"/spec/profiles/0/name","value":"Standard Profile"}]`,
			want:  cause{"spec.profiles[0].name", dnsName + ", because it is the value of a label"},
		},
		{
			name:  "two bindings of one profile name",
			patch: `[{"op":"replace","path":"/spec/profiles/0/name","value":"production"}]`,
			want:  cause{"spec.profiles[3]", `Duplicate value: {"name":"production"}`},
		},
		{
			name:  "a profile that only warns",
			patch: `[{"op":"replace","path":"/spec/profiles/0/floorEnforcement","value":"Warn"}]`,
			want:  cause{"spec.profiles[0].floorEnforcement", `supported values: "Enforce", "Audit"`},
		},
		{
			name:  "the delegation of something that is never delegated",
			patch: `[{"op":"replace","path":"/spec/delegation/namespaceMaySet/0","value":"Caps"}]`,
			want:  cause{"spec.delegation.namespaceMaySet[0]", `supported values: "ModelTier", "InitiativeMode", "InitiativeThresholds", "SessionTemplates"`},
		},
		{
			name:  "the delegation of every tool",
			patch: `[{"op":"replace","path":"/spec/delegation/catalogueToolPrefixes/0","value":""}]`,
			want:  cause{"spec.delegation.catalogueToolPrefixes[0]", "should be at least 1 chars long"},
		},
	})
}

func TestBadRulesAreRefused(t *testing.T) {
	expectRefusals(t, "testdata/clusteragentpolicy/valid/platform.yaml", []refusal{
		{
			name:  "a rule for patches, which would never match",
			patch: `[{"op":"replace","path":"/spec/rules/0/match/kubernetes/0/verbs","value":["create","patch"]}]`,
			want:  cause{"spec.rules[0].match.kubernetes[0].verbs[1]", "patch is not a verb here, because admission reports a patch as an update: write update"},
		},
		{
			name:  "a rule for a verb of the API that is no verb here",
			patch: `[{"op":"replace","path":"/spec/rules/0/match/kubernetes/0/verbs","value":["get"]}]`,
			want:  cause{"spec.rules[0].match.kubernetes[0].verbs[0]", `Invalid value: "get": get is not a verb here: write read, which is get, list and watch`},
		},
		{
			name:  "a policy of 129 rules",
			patch: `[{"op":"replace","path":"/spec/rules","value":[` + manyRules(129) + `]}]`,
			want:  cause{"spec.rules", "must have at most 128 items"},
		},
		{
			name:  "a rule without verbs",
			patch: `[{"op":"remove","path":"/spec/rules/0/match/kubernetes/0/verbs"}]`,
			want:  cause{"spec.rules[0].match.kubernetes[0].verbs", "Required value"},
		},
		{
			name:  "a rule that loosens",
			patch: `[{"op":"replace","path":"/spec/rules/0/class","value":"AUTO"}]`,
			want:  cause{"spec.rules[0].class", `supported values: "ASK", "FORBIDDEN"`},
		},
		{
			name:  "a class in our own spelling",
			patch: `[{"op":"replace","path":"/spec/rules/0/class","value":"Ask"}]`,
			want:  cause{"spec.rules[0].class", `supported values: "ASK", "FORBIDDEN"`},
		},
		{
			name:  "an unknown enforcement",
			patch: `[{"op":"replace","path":"/spec/rules/0/enforcement","value":"DryRun"}]`,
			want:  cause{"spec.rules[0].enforcement", `supported values: "Enforce", "Warn", "Audit"`},
		},
		{
			name:  "a rule that matches nothing",
			patch: `[{"op":"replace","path":"/spec/rules/0/match","value":{}}]`,
			want:  cause{"spec.rules[0].match", "needs kubernetes or tools: an empty match would select nothing"},
		},
		{
			name:  "a group with an upper-case letter",
			patch: `[{"op":"replace","path":"/spec/rules/0/match/kubernetes/0/groups","value":["Apps"]}]`,
			want:  cause{"spec.rules[0].match.kubernetes[0].groups[0]", `must be an API group, "" for the core group, or "*" for every group`},
		},
		{
			name:  "a group with a pattern",
			patch: `[{"op":"replace","path":"/spec/rules/0/match/kubernetes/0/groups","value":["*.k8s.io"]}]`,
			want:  cause{"spec.rules[0].match.kubernetes[0].groups[0]", `must be an API group, "" for the core group, or "*" for every group`},
		},
		{
			name:  "a kind where a resource is meant",
			patch: `[{"op":"replace","path":"/spec/rules/0/match/kubernetes/0/resources","value":["Node"]}]`,
			want:  cause{"spec.rules[0].match.kubernetes[0].resources[0]", `must be a plural resource, resource/subresource, resource/*, or "*"`},
		},
		{
			name:  "a resource with a pattern",
			patch: `[{"op":"replace","path":"/spec/rules/0/match/kubernetes/0/resources","value":["*/scale"]}]`,
			want:  cause{"spec.rules[0].match.kubernetes[0].resources[0]", `must be a plural resource, resource/subresource, resource/*, or "*"`},
		},
		{
			name:  "a name with the wildcard in front",
			patch: `[{"op":"replace","path":"/spec/rules/3/match/kubernetes/0/names","value":["*-web"]}]`,
			want:  cause{"spec.rules[3].match.kubernetes[0].names[0]", lastStar},
		},
		{
			name:  "a name with two wildcards",
			patch: `[{"op":"replace","path":"/spec/rules/3/match/kubernetes/0/names","value":["web-**"]}]`,
			want:  cause{"spec.rules[3].match.kubernetes[0].names[0]", lastStar},
		},
		{
			name:  "an empty list of names, which would match nothing",
			patch: `[{"op":"replace","path":"/spec/rules/3/match/kubernetes/0/names","value":[]}]`,
			want:  cause{"spec.rules[3].match.kubernetes[0].names", "should have at least 1 items"},
		},
		{
			name:  "an unknown origin",
			patch: `[{"op":"replace","path":"/spec/rules/3/match/kubernetes/0/origins","value":["Agent"]}]`,
			want:  cause{"spec.rules[3].match.kubernetes[0].origins[0]", `supported values: "ThisSession", "OtherSession", "Person", "Controller", "Unknown"`},
		},
		{
			name:  "a rule name that is no name",
			patch: `[{"op":"replace","path":"/spec/rules/0/name","value":"Forbid nodes"}]`,
			want:  cause{"spec.rules[0].name", dnsName + ", as in ask-foreign-registry"},
		},
		{
			name:  "a detail of two lines",
			patch: `[{"op":"replace","path":"/spec/rules/0/detail","value":"first\nsecond"}]`,
			want:  cause{"spec.rules[0].detail", singleLine},
		},
		{
			name:  "a recovery with a terminal escape",
			patch: `[{"op":"replace","path":"/spec/rules/0/recovery","value":"\u001b[2J run this"}]`,
			want:  cause{"spec.rules[0].recovery", singleLine},
		},
		{
			name:  "a detail of 241 characters",
			patch: `[{"op":"replace","path":"/spec/rules/0/detail","value":"` + strings.Repeat("a", 241) + `"}]`,
			want:  cause{"spec.rules[0].detail", "may not be more than 240 bytes"},
		},
		{
			name:  "an expression of 4097 characters",
			patch: `[{"op":"replace","path":"/spec/rules/1/when","value":"` + strings.Repeat("a", 4097) + `"}]`,
			want:  cause{"spec.rules[1].when", "may not be more than 4096 bytes"},
		},
		{
			name:  "a catalogue entry whose name is no name",
			patch: `[{"op":"replace","path":"/spec/catalogue/0/name","value":"reads/kubernetes"}]`,
			want:  cause{"spec.catalogue[0].name", dnsName + ", as in kubernetes-mcp-reads"},
		},
		{
			name:  "a catalogue entry without facts",
			patch: `[{"op":"replace","path":"/spec/catalogue/0/facts","value":{}}]`,
			want:  cause{"spec.catalogue[0].facts", "needs present or absent: an entry without facts would say nothing"},
		},
		{
			name:  "an effect that does not exist",
			patch: `[{"op":"add","path":"/spec/catalogue/0/effect","value":"Write"}]`,
			want:  cause{"spec.catalogue[0].effect", `supported values: "Read"`},
		},
		{
			name:  "a tool with a star in its middle",
			patch: `[{"op":"add","path":"/spec/catalogue/0/match/tools","value":["mcp:*/pods_list"]}]`,
			want:  cause{"spec.catalogue[0].match.tools[0]", `"*" stands alone or once at the end, as in mcp:kubernetes/*`},
		},
		{
			name:  "a fact that is present and absent",
			patch: `[{"op":"add","path":"/spec/catalogue/0/facts/absent/-","value":"Local"}]`,
			want:  cause{"spec.catalogue[0].facts", "a fact cannot be both present and absent"},
		},
		{
			name:  "an unknown fact",
			patch: `[{"op":"add","path":"/spec/catalogue/0/facts/absent/-","value":"Dangerous"}]`,
			want:  cause{"spec.catalogue[0].facts.absent[6]", `"MaterialAssumption", "Ambiguous"`},
		},
		{
			name:  "a fact named twice",
			patch: `[{"op":"add","path":"/spec/catalogue/0/facts/absent/-","value":"Cost"}]`,
			want:  cause{"spec.catalogue[0].facts.absent[6]", `Duplicate value: "Cost"`},
		},
	})
}

// manyRules are n rules in JSON that are good by themselves.
func manyRules(n int) string {
	rules := make([]string, n)
	for i := range rules {
		rules[i] = fmt.Sprintf(`{"name":"r%d","class":"ASK","match":{"tools":["a"]}}`, i)
	}
	return strings.Join(rules, ",")
}

func TestBadAgentPoliciesAreRefused(t *testing.T) {
	expectRefusals(t, "testdata/agentpolicy/valid/production.yaml", []refusal{
		{
			name:  "a catalogue of kinds, which only a ClusterAgentPolicy has",
			patch: `[{"op":"add","path":"/spec/catalogue","value":[{"name":"pods","match":{"kubernetes":[{"groups":[""],"resources":["pods"],"verbs":["create"]}]},"facts":{"present":["Reversible"]}}]}]`,
			want:  cause{"spec.catalogue", "an AgentPolicy catalogues tools only: every match has tools and no kubernetes; kinds are catalogued by a ClusterAgentPolicy"},
		},
		{
			name:  "a tier that does not exist",
			patch: `[{"op":"replace","path":"/spec/modelTier","value":"huge"}]`,
			want:  cause{"spec.modelTier", `supported values: "small", "medium", "large"`},
		},
		{
			name:  "a mode that does not exist",
			patch: `[{"op":"replace","path":"/spec/initiative/mode","value":"bold"}]`,
			want:  cause{"spec.initiative.mode", `supported values: "fast", "standard", "exploratory", "strict"`},
		},
		{
			name:  "a threshold for mode strict",
			patch: `[{"op":"add","path":"/spec/initiative/thresholds","value":[{"mode":"strict","minScorePercent":1,"maxOptionalActions":1}]}]`,
			want:  cause{"spec.initiative.thresholds[0].mode", "mode strict allows no optional action and so has no threshold"},
		},
		{
			name:  "two optional actions in mode fast",
			patch: `[{"op":"add","path":"/spec/initiative/thresholds","value":[{"mode":"fast","minScorePercent":150,"maxOptionalActions":2}]}]`,
			want:  cause{"spec.initiative.thresholds[0].maxOptionalActions", "mode fast allows at most the strongest optional action: 1"},
		},
		{
			name:  "high confidence below medium",
			patch: `[{"op":"replace","path":"/spec/confidence/highPercent","value":60}]`,
			want:  cause{"spec.confidence.highPercent", "must be greater than mediumPercent"},
		},
		{
			name:  "a percentage above 100",
			patch: `[{"op":"replace","path":"/spec/confidence/highPercent","value":101}]`,
			want:  cause{"spec.confidence.highPercent", "should be less than or equal to 100"},
		},
		{
			name:  "an approval that is wider than a time box",
			patch: `[{"op":"add","path":"/spec/approvals/widestScope","value":"Everything"}]`,
			want:  cause{"spec.approvals.widestScope", `supported values: "Exact", "Session", "TimeBoxed"`},
		},
		{
			name:  "a time box of more than 7 days",
			patch: `[{"op":"add","path":"/spec/approvals/maxTimeBoxSeconds","value":604801}]`,
			want:  cause{"spec.approvals.maxTimeBoxSeconds", "should be less than or equal to 604800"},
		},
		{
			name:  "more uses than a grant remembers",
			patch: `[{"op":"add","path":"/spec/approvals/maxTimeBoxUses","value":101}]`,
			want:  cause{"spec.approvals.maxTimeBoxUses", "should be less than or equal to 100"},
		},
		{
			name:  "a question that lives longer than 30 days",
			patch: `[{"op":"replace","path":"/spec/approvals/decideWithinSeconds","value":2592001}]`,
			want:  cause{"spec.approvals.decideWithinSeconds", "should be less than or equal to 2592000"},
		},
		{
			name:  "a question that expires at once",
			patch: `[{"op":"replace","path":"/spec/approvals/decideWithinSeconds","value":0}]`,
			want:  cause{"spec.approvals.decideWithinSeconds", "should be greater than or equal to 1"},
		},
		{
			name:  "a session user who may perhaps approve",
			patch: `[{"op":"replace","path":"/spec/approvals/sessionUser","value":"Ask"}]`,
			want:  cause{"spec.approvals.sessionUser", `supported values: "Allow", "Refuse"`},
		},
		{
			name:  "a requirement of nobody",
			patch: `[{"op":"replace","path":"/spec/approvals/requirements/0/required","value":0}]`,
			want:  cause{"spec.approvals.requirements[0].required", "should be greater than or equal to 1"},
		},
		{
			name:  "a requirement that selects nothing",
			patch: `[{"op":"replace","path":"/spec/approvals/requirements/1/match","value":{}}]`,
			want:  cause{"spec.approvals.requirements[1].match", "needs facts, rules or resources: omit match to select every question"},
		},
		{
			name:  "an empty list of approver groups, which nobody is in",
			patch: `[{"op":"replace","path":"/spec/approvals/requirements/0/approverGroups","value":[]}]`,
			want:  cause{"spec.approvals.requirements[0].approverGroups", "should have at least 1 items"},
		},
		{
			name:  "a negative cap",
			patch: `[{"op":"replace","path":"/spec/caps/maxPendingGrants","value":-1}]`,
			want:  cause{"spec.caps.maxPendingGrants", "should be greater than or equal to 0"},
		},
		{
			name:  "retention of seconds",
			patch: `[{"op":"replace","path":"/spec/retention/finishedGrantSeconds","value":1}]`,
			want:  cause{"spec.retention.finishedGrantSeconds", "should be greater than or equal to 60"},
		},
		{
			name:  "a template name that cannot be the value of a label",
			patch: `[{"op":"replace","path":"/spec/sessionTemplates/0/name","value":"agent:one"}]`,
			want:  cause{"spec.sessionTemplates[0].name", dnsName + ", because it is the value of a label"},
		},
		{
			name:  "a template without a user",
			patch: `[{"op":"remove","path":"/spec/sessionTemplates/0/user"}]`,
			want:  cause{"spec.sessionTemplates[0].user", "Required value"},
		},
		{
			name:  "a fixed user without a name",
			patch: `[{"op":"remove","path":"/spec/sessionTemplates/0/user/name"}]`,
			want:  cause{"spec.sessionTemplates[0].user.name", "is required with source Fixed and not allowed with source PodAnnotation"},
		},
		{
			name:  "an annotated user with a name",
			patch: `[{"op":"replace","path":"/spec/sessionTemplates/0/user/source","value":"PodAnnotation"}]`,
			want:  cause{"spec.sessionTemplates[0].user.name", "is required with source Fixed and not allowed with source PodAnnotation"},
		},
		{
			name:  "a template whose user opened the session",
			patch: `[{"op":"replace","path":"/spec/sessionTemplates/0/user/source","value":"Explicit"}]`,
			want:  cause{"spec.sessionTemplates[0].user.source", `supported values: "Fixed", "PodAnnotation"`},
		},
		{
			name:  "a template for every ServiceAccount",
			patch: `[{"op":"replace","path":"/spec/sessionTemplates/0/serviceAccountName","value":"*"}]`,
			want:  cause{"spec.sessionTemplates[0].serviceAccountName", "must be one exact name, without *"},
		},
		{
			name:  "a template without stages",
			patch: `[{"op":"replace","path":"/spec/sessionTemplates/0/authority/stages","value":[]}]`,
			want:  cause{"spec.sessionTemplates[0].authority.stages", "should have at least 1 items"},
		},
		{
			name:  "a capability that does not exist",
			patch: `[{"op":"add","path":"/spec/sessionTemplates/0/authority/capabilities/-","value":"execute_remote"}]`,
			want:  cause{"spec.sessionTemplates[0].authority.capabilities[5]", `"read_user_model", "write_user_model", "record_evidence"`},
		},
		{
			name:  "authority to patch",
			patch: `[{"op":"replace","path":"/spec/sessionTemplates/0/authority/kubernetes/0/verbs/0","value":"patch"}]`,
			want:  cause{"spec.sessionTemplates[0].authority.kubernetes[0].verbs[0]", "patch is not a verb here, because admission reports a patch as an update: write update"},
		},
		{
			name:  "a session that lives for seconds",
			patch: `[{"op":"replace","path":"/spec/sessionTemplates/0/maxAgeSeconds","value":5}]`,
			want:  cause{"spec.sessionTemplates[0].maxAgeSeconds", "should be greater than or equal to 60"},
		},
	})
}

func TestBadAgentSessionsAreRefused(t *testing.T) {
	expectRefusals(t, "testdata/agentsession/valid/from-template.yaml", []refusal{
		{
			name:  "a name that is too long for a label",
			patch: `[{"op":"replace","path":"/metadata/name","value":"` + strings.Repeat("n", 64) + `"}]`,
			want:  cause{"metadata", "name: has at most 63 characters, because it is a label of the session's grants"},
		},
		{
			name:  "a session without a user",
			patch: `[{"op":"remove","path":"/spec/userName"}]`,
			want:  cause{"spec.userName", "Required value"},
		},
		{
			name:  "a session without an end",
			patch: `[{"op":"remove","path":"/spec/deadlineTime"}]`,
			want:  cause{"spec.deadlineTime", "Required value"},
		},
		{
			name:  "a deadline that is no time",
			patch: `[{"op":"replace","path":"/spec/deadlineTime","value":"tomorrow"}]`,
			want:  cause{"spec.deadlineTime", `in body must be of type date-time: "tomorrow"`},
		},
		{
			name:  "a ServiceAccount without a name",
			patch: `[{"op":"remove","path":"/spec/identity/serviceAccountName"}]`,
			want:  cause{"spec.identity.serviceAccountName", "is required with type ServiceAccount and not allowed with type User"},
		},
		{
			name:  "every ServiceAccount of the namespace",
			patch: `[{"op":"replace","path":"/spec/identity/serviceAccountName","value":"agent-*"}]`,
			want:  cause{"spec.identity.serviceAccountName", "must be one exact name, without *"},
		},
		{
			name:  "a ServiceAccount that is a user as well",
			patch: `[{"op":"add","path":"/spec/identity/userName","value":"anna@acme.example"}]`,
			want:  cause{"spec.identity.userName", "is required with type User and not allowed with type ServiceAccount"},
		},
		{
			name:  "a user without a name",
			patch: `[{"op":"replace","path":"/spec/identity","value":{"type":"User"}}]`,
			want:  cause{"spec.identity.userName", "is required with type User and not allowed with type ServiceAccount"},
		},
		{
			name:  "a user that Kubernetes owns",
			patch: `[{"op":"replace","path":"/spec/identity","value":{"type":"User","userName":"system:admin"}}]`,
			want:  cause{"spec.identity.userName", "must not start with system: (use type ServiceAccount for a ServiceAccount)"},
		},
		{
			name:  "a user with a pod",
			patch: `[{"op":"replace","path":"/spec/identity","value":{"type":"User","userName":"anna","podName":"a","podUID":"b"}}]`,
			want:  cause{"spec.identity.podName", "is not allowed with type User: a user has no pod"},
		},
		{
			name:  "a user with a workload",
			patch: `[{"op":"replace","path":"/spec/identity","value":{"type":"User","userName":"anna","rootOwner":{"kind":"Job","name":"a","uid":"b"}}}]`,
			want:  cause{"spec.identity.rootOwner", "is not allowed with type User: a user has no workload"},
		},
		{
			name:  "a pod by name alone",
			patch: `[{"op":"remove","path":"/spec/identity/rootOwner"},{"op":"add","path":"/spec/identity/podName","value":"fix-latency-x7k2p"}]`,
			want:  cause{"spec.identity.podUID", "podName and podUID are set together: a name alone would also fit the next pod"},
		},
		{
			name:  "a pod and a workload",
			patch: `[{"op":"add","path":"/spec/identity/podName","value":"a"},{"op":"add","path":"/spec/identity/podUID","value":"b"}]`,
			want:  cause{"spec.identity.rootOwner", "is not allowed beside podName: a session follows a workload or a pod"},
		},
		{
			name:  "a stage that does not exist",
			patch: `[{"op":"replace","path":"/spec/authority/stages/0","value":"EXECUTE"}]`,
			want:  cause{"spec.authority.stages[0]", `supported values: "understand", "propose", "execute", "publish"`},
		},
		{
			name:  "a negative budget",
			patch: `[{"op":"replace","path":"/spec/authority/budgets/maxMutations","value":-1}]`,
			want:  cause{"spec.authority.budgets.maxMutations", "should be greater than or equal to 0"},
		},
	})
}

func TestBadPermissionGrantsAreRefused(t *testing.T) {
	const digest = "must be v1: and 64 hexadecimal digits"
	expectRefusals(t, "testdata/permissiongrant/valid/delete-volume-claim.yaml", []refusal{
		{
			name:  "a digest of another scheme",
			patch: `[{"op":"replace","path":"/spec/request/digest","value":"sha256:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b"}]`,
			want:  cause{"spec.request.digest", digest},
		},
		{
			name:  "a shortened digest",
			patch: `[{"op":"replace","path":"/spec/request/digest","value":"v1:faf78c6d"}]`,
			want:  cause{"spec.request.digest", digest},
		},
		{
			name:  "a pattern, where only exact questions exist",
			patch: `[{"op":"replace","path":"/spec/request/type","value":"Pattern"}]`,
			want:  cause{"spec.request.type", `supported values: "Exact"`},
		},
		{
			name:  "a question before the first",
			patch: `[{"op":"replace","path":"/spec/request/question","value":0}]`,
			want:  cause{"spec.request.question", "should be greater than or equal to 1"},
		},
		{
			name:  "a stage that does not exist",
			patch: `[{"op":"replace","path":"/spec/request/stage","value":"Execute"}]`,
			want:  cause{"spec.request.stage", `supported values: "understand", "propose", "execute", "publish"`},
		},
		{
			name:  "a session without an epoch",
			patch: `[{"op":"remove","path":"/spec/request/session/epoch"}]`,
			want:  cause{"spec.request.session.epoch", "Required value"},
		},
		{
			name:  "a session without a uid",
			patch: `[{"op":"remove","path":"/spec/request/session/uid"}]`,
			want:  cause{"spec.request.session.uid", "Required value"},
		},
		{
			name:  "a requester without a name",
			patch: `[{"op":"replace","path":"/spec/request/requester/username","value":""}]`,
			want:  cause{"spec.request.requester.username", "should be at least 1 chars long"},
		},
		{
			name:  "a patch",
			patch: `[{"op":"replace","path":"/spec/request/operation/verb","value":"patch"}]`,
			want:  cause{"spec.request.operation.verb", "patch is not a verb here, because admission reports a patch as an update: write update"},
		},
		{
			name:  "a summary of two lines",
			patch: `[{"op":"replace","path":"/spec/request/operation/summary","value":"delete\nnothing"}]`,
			want:  cause{"spec.request.operation.summary", singleLine},
		},
		{
			name:  "a change that clears the approver's screen",
			patch: `[{"op":"replace","path":"/spec/request/change/0","value":"\u001b[2Jharmless"}]`,
			want:  cause{"spec.request.change[0]", singleLine},
		},
		{
			name:  "a comment of two lines",
			patch: `[{"op":"replace","path":"/spec/requesterComment","value":"harmless\nVerdict: Approve"}]`,
			want:  cause{"spec.requesterComment", singleLine},
		},
		{
			// Proves C-6.
			name:  "a grant for a forbidden operation",
			patch: `[{"op":"replace","path":"/spec/request/rules/0/class","value":"FORBIDDEN"}]`,
			want:  cause{"spec.request.rules[0].class", "must not be FORBIDDEN: no approval opens a forbidden operation"},
		},
		{
			name:  "a question that nobody must approve",
			patch: `[{"op":"replace","path":"/spec/request/requirements","value":[]}]`,
			want:  cause{"spec.request.requirements", "should have at least 1 items"},
		},
		{
			name:  "a grant for two uses",
			patch: `[{"op":"replace","path":"/spec/request/maxUses","value":2}]`,
			want:  cause{"spec.request.maxUses", "should be less than or equal to 1"},
		},
		{
			name:  "a question that never expires",
			patch: `[{"op":"remove","path":"/spec/request/decideByTime"}]`,
			want:  cause{"spec.request.decideByTime", "Required value"},
		},
		{
			// Proves G-4.
			name: "a grant that is born approved",
			patch: `[{"op":"replace","path":"/spec/decisions","value":[{"approver":"ben@acme.example","verdict":"Approve",
				"shownDigest":"v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"}]}]`,
			want: cause{"spec.decisions", "must be empty when a grant is created: an answer follows a question"},
		},
	})
}
