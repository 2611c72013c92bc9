package integration_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// malformed is an object that somebody with the right RBAC sends, and the answer.
type malformed struct {
	name   string
	object string
	want   refusedObject
	// says are parts of the message: the rule, line and column of an expression.
	says []string
}

// refusedObject is the HTTP code and the paths of the bad fields, as in kubectl's message.
type refusedObject struct {
	Code  int32
	Paths []string
}

func expectMalformed(t *testing.T, who *actor, head string, tests []malformed) {
	t.Helper()
	c := client.WithFieldValidation(who, "Strict")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			objects, err := env.Decode([]byte(head + tt.object))
			if err != nil {
				t.Fatal(err)
			}
			err = c.Create(t.Context(), objects[0], client.DryRunAll)
			var answered apierrors.APIStatus
			if !errors.As(err, &answered) {
				t.Fatalf("got %v, want a refusal", err)
			}
			status := answered.Status()
			got := refusedObject{Code: status.Code}
			for _, path := range tt.want.Paths {
				if strings.Contains(status.Message, path+":") {
					got.Paths = append(got.Paths, path)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("refusal (-want +got):\n%s%s", diff, status.Message)
			}
			for _, part := range tt.says {
				if !strings.Contains(status.Message, part) {
					t.Errorf("the message does not say %q: %s", part, status.Message)
				}
			}
		})
	}
}

func invalid(paths ...string) refusedObject   { return refusedObject{Code: 422, Paths: paths} }
func forbidden(paths ...string) refusedObject { return refusedObject{Code: 403, Paths: paths} }

const clusterPolicyHead = `
apiVersion: stepbeyond.dev/v1alpha1
kind: ClusterAgentPolicy
metadata: {name: another}
spec:
  baselineVersion: v1
`

func TestMalformedClusterAgentPoliciesAreRefusedWithThePathOfTheField(t *testing.T) {
	selector := `
  governed: {namespaceSelector: {matchLabels: {team: another}}}`
	expectMalformed(t, petra, clusterPolicyHead, []malformed{
		{"a selector that selects everything", `
  governed: {namespaceSelector: {}}`, invalid("spec.governed.namespaceSelector"), nil},
		{"a system identity as a governed user", `
  governed:
    namespaceSelector: {matchLabels: {team: another}}
    users: [{name: "system:kube-scheduler", sessionNamespace: objects}]`, invalid("spec.governed.users[0].name"), nil},
		{"an exemption of the canary", `
  governed:
    namespaceSelector: {matchLabels: {team: another}}
    exemptServiceAccounts: [{namespace: stepbeyond-canary, name: canary, reason: quiet}]`, invalid("spec.governed.exemptServiceAccounts[0]"), nil},
		{"a baseline that the binary does not embed", `
  governed: {namespaceSelector: {matchLabels: {team: another}}}
  baselineVersion: v9`, invalid("spec.baselineVersion"), []string{"this binary embeds v1"}},
		{"a profile that another object binds", selector + `
  profiles: [{name: standard, agentPolicyName: standard, floorEnforcement: Enforce}]`, invalid("spec.profiles[0].name"), []string{"ClusterAgentPolicy default"}},
		{"a rule that loosens", selector + `
  rules: [{name: loosen, class: AUTO, match: {kubernetes: [{groups: [apps], resources: ["*"], verbs: [update]}]}}]`, invalid("spec.rules[0].class"), nil},
		{"a rule for patches", selector + `
  rules: [{name: never, class: ASK, match: {kubernetes: [{groups: [apps], resources: ["*"], verbs: [patch]}]}}]`, invalid("spec.rules[0].match.kubernetes[0].verbs[0]"), []string{"write update"}},
		{"an expression that does not parse", selector + `
  rules:
  - name: ask-large
    class: ASK
    match: {kubernetes: [{groups: [apps], resources: [deployments], verbs: [update]}]}
    when: |-
      has(object.spec) &&
        object.spec.replicas >> 3`, invalid("spec.rules[0].when"), []string{"rule ask-large", "line 2, column 25"}},
		{"an expression of another type", selector + `
  rules:
  - {name: ask-none, class: ASK, match: {kubernetes: [{groups: [apps], resources: [deployments], verbs: [update]}]}, when: "'yes'"}`,
			invalid("spec.rules[0].when"), []string{"rule ask-none", "must give a bool"}},
		{"an expression over something that does not exist", selector + `
  catalogue:
  - {name: tools, match: {kubernetes: [{groups: [acme.example], resources: [widgets], verbs: [create]}]}, when: "widget.size > 3", facts: {present: [Reversible]}}`,
			invalid("spec.catalogue[0].when"), []string{"entry tools", "line 1, column 1"}},
		{"a field that does not exist", selector + `
  enforce: true`, refusedObject{Code: 400}, []string{`unknown field "spec.enforce"`}},
	})
}

const profileHead = `
apiVersion: stepbeyond.dev/v1alpha1
kind: AgentPolicy
`

func TestMalformedAgentPoliciesAreRefusedWithThePathOfTheField(t *testing.T) {
	template := `{name: %s, serviceAccountName: agent, user: {source: Fixed, name: x}, authority: {stages: [execute], capabilities: [execute_local]}}`
	named := func(name string) string { return strings.Replace(template, "%s", name, 1) }
	expectMalformed(t, petra, profileHead, []malformed{
		{"two templates for one ServiceAccount", `
metadata: {name: another, namespace: stepbeyond-system}
spec: {sessionTemplates: [` + named("a") + `, ` + named("b") + `]}`, invalid("spec.sessionTemplates[1].serviceAccountName"), []string{"template a"}},
		{"a threshold out of bounds", `
metadata: {name: another, namespace: stepbeyond-system}
spec: {confidence: {mediumPercent: 80, highPercent: 101}}`, invalid("spec.confidence.highPercent"), nil},
		{"a bad expression in a profile", `
metadata: {name: another, namespace: stepbeyond-system}
spec:
  rules:
  - {name: ask-foreign, class: ASK, match: {kubernetes: [{groups: [apps], resources: ["*"], verbs: [update]}]}, when: "target.origin != "}`,
			invalid("spec.rules[0].when"), []string{"rule ask-foreign", "line 1, column"}},
		{"a namespace's policy under another name", `
metadata: {name: mine, namespace: objects}
spec: {}`, invalid("metadata.name"), nil},
		{"approvals that belong to the profile", `
metadata: {name: default, namespace: objects}
spec: {approvals: {requirements: [{name: nobody, required: 1}]}}`, forbidden("spec.approvals"), nil},
		{"a setting that is not delegated", `
metadata: {name: default, namespace: objects}
spec: {initiative: {mode: fast}}`, forbidden("spec.initiative.mode"), []string{"InitiativeMode"}},
	})
	// The positive twin: what is delegated, and a rule that tightens.
	objects, err := env.Decode([]byte(profileHead + `
metadata: {name: default, namespace: objects}
spec:
  modelTier: small
  rules: [{name: ask-config, class: ASK, match: {kubernetes: [{groups: [""], resources: [configmaps], verbs: [update]}]}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if err := petra.Create(t.Context(), objects[0], client.DryRunAll); err != nil {
		t.Errorf("a policy that only tightens: %v", err)
	}
}

const sessionHead = `
apiVersion: stepbeyond.dev/v1alpha1
kind: AgentSession
`

// Proves K-1.
func TestMalformedSessionsAreRefusedWithThePathOfTheField(t *testing.T) {
	spec := func(changes ...string) string {
		text := `
spec:
  identity: {type: ServiceAccount, serviceAccountName: agent}
  userName: dora@acme.example
  modelTier: medium
  initiativeMode: standard
  authority: {stages: [execute], capabilities: [execute_local]}
  deadlineTime: "2999-01-01T00:00:00Z"`
		return strings.NewReplacer(changes...).Replace(text)
	}
	at := func(namespace string) string { return "metadata: {name: by-hand, namespace: " + namespace + "}" }
	expectMalformed(t, petra, sessionHead, []malformed{
		{"a deadline that has passed", at("objects") + spec("2999", "2020"), invalid("spec.deadlineTime"), nil},
		{"no deadline", at("objects") + spec(`  deadlineTime: "2999-01-01T00:00:00Z"`, ""), invalid("spec.deadlineTime"), nil},
		{"a namespace that is not governed", at("free") + spec(), invalid("metadata.namespace"), []string{"free is not governed"}},
		{"a capability that the template does not give", at("objects") + spec("[execute_local]", "[execute_local, publish_external]"), invalid("spec.authority.capabilities[1]"), []string{`session template "agent"`}},
		{"a stage that the template does not give", at("objects") + spec("[execute]", "[execute, publish]"), invalid("spec.authority.stages[1]"), nil},
		{"a user that is not governed", at("objects") + spec("type: ServiceAccount, serviceAccountName: agent", `type: User, userName: "oidc:somebody"`), invalid("spec.identity.userName"), nil},
		{"a pod by its name alone", at("objects") + spec("serviceAccountName: agent", "serviceAccountName: agent, podName: agent-0"), invalid("spec.identity.podUID"), nil},
		{"an opener in the name of somebody else", "metadata: {name: by-hand, namespace: objects, annotations: {stepbeyond.dev/opened-by: ben@acme.example}}" + spec(),
			forbidden(`metadata.annotations[stepbeyond.dev/opened-by]`), nil},
		{"an unknown mode", at("objects") + spec("initiativeMode: standard", "initiativeMode: reckless"), invalid("spec.initiativeMode"), nil},
	})
	objects, err := env.Decode([]byte(sessionHead + at("objects") + spec()))
	if err != nil {
		t.Fatal(err)
	}
	if err := petra.Create(t.Context(), objects[0], client.DryRunAll); err != nil {
		t.Errorf("a session inside its template: %v", err)
	}
	if got := objects[0].GetAnnotations()["stepbeyond.dev/opened-by"]; got != petraName {
		t.Errorf("the session is opened by %q, want %s", got, petraName)
	}
}
