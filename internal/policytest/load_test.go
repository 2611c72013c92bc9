package policytest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/internal/policytest"
)

const policies = `
apiVersion: stepbeyond.dev/v1alpha1
kind: ClusterAgentPolicy
metadata: {name: default}
spec:
  baselineVersion: v1
  governed: {namespaceSelector: {matchExpressions: [{key: stepbeyond.dev/profile, operator: Exists}]}}
  profiles: [{name: standard, agentPolicyName: standard, floorEnforcement: Enforce}]
---
apiVersion: stepbeyond.dev/v1alpha1
kind: AgentPolicy
metadata: {name: standard, namespace: stepbeyond-system}
spec:
  approvals: {requirements: [{name: one-person}]}
  sessionTemplates:
  - name: agent
    serviceAccountName: agent
    user: {source: Fixed, name: ana@acme.example}
    authority: {stages: [understand, propose, execute], capabilities: [execute_local]}
`

const cases = `
apiVersion: test.stepbeyond.dev/v1alpha1
kind: PolicyTest
metadata: {name: example}
spec:
  now: "2026-11-30T18:00:00Z"
  sessions:
  - {name: agent, namespace: checkout, profile: standard, template: agent}
  cases:
  - name: creating a ConfigMap is free
    session: agent
    operation:
      kubernetes: {verb: create, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: checkout}}}
    want: {class: AUTO, verdict: Allow}
  - name: deleting one asks
    session: agent
    operation:
      kubernetes: {verb: delete, resource: configmaps, namespace: checkout, name: web}
    want: {class: ASK, verdict: Pending, requirements: [one-person]}
`

// edited is the example with one text of its two files replaced.
func edited(t *testing.T, old, changed string) fstest.MapFS {
	t.Helper()
	if strings.Count(policies+cases, old) != 1 {
		t.Fatalf("%q stands %d times in the example, want once", old, strings.Count(policies+cases, old))
	}
	return fstest.MapFS{
		"policy.yaml": {Data: []byte(strings.ReplaceAll(policies, old, changed))},
		"cases.yaml":  {Data: []byte(strings.ReplaceAll(cases, old, changed))},
	}
}

func TestWhatIsWrongInTheFilesIsNamed(t *testing.T) {
	for _, test := range []struct{ name, old, changed, want string }{
		{"an unknown field of a case", "want: {class: AUTO,", "want: {klass: AUTO,", `cases.yaml: unknown field "spec.cases[0].want.klass"`},
		{"an unknown kind of operation", "kubernetes: {verb: create,", "shell: {name: a,", `cases.yaml: unknown field "spec.cases[0].operation.shell"`},
		{"a field that stands twice", "profile: standard, template", "profile: standard, profile: other, template", `"profile" already set`},
		{"a type that does not fit", "  now: \"2026-11-30T18:00:00Z\"", "  now: 5", "cases.yaml: json: cannot unmarshal"},
		{"no clock", "  now: \"2026-11-30T18:00:00Z\"\n", "", "cases.yaml: spec.now: is required"},
		{"another kind", "kind: PolicyTest", "kind: PolicyTests", "cases.yaml: kind: is test.stepbeyond.dev/v1alpha1 PolicyTests, want"},
		{"two cases of one name", "- name: deleting one asks", "- name: creating a ConfigMap is free", "cases.yaml: spec.cases[1].name:"},
		{"a session that is not there", "free\n    session: agent", "free\n    session: agnt", `cases.yaml: spec.cases[0].session: there is no session "agnt"`},
		{"a class that does not exist", "{class: ASK,", "{class: Ask,", `cases.yaml: spec.cases[1].want.class: "Ask" is none of`},
		{"a verdict that does not exist", "verdict: Allow", "verdict: Allowed", `cases.yaml: spec.cases[0].want.verdict: "Allowed" is none of`},
		{"a template that the profile lacks", "template: agent", "template: agnet", `cases.yaml: spec.sessions[0].template: namespace checkout with profile "standard" has no session template "agnet"`},
		{"a profile that nobody binds", "profile: standard", "profile: standrad", `cases.yaml: spec.sessions[0].template: namespace checkout with profile "standrad" has no`},
		{"a state that does not exist", "template: agent}", "template: agent, state: Paused}", `cases.yaml: spec.sessions[0].state: unknown state "Paused"`},
		{"a hold that names no input", "template: agent}", "template: agent, hold: {author: ana}}", "cases.yaml: spec.sessions[0].hold.name: is required"},
		{"a hold of nobody", "template: agent}", "template: agent, hold: {name: a}}", "cases.yaml: spec.sessions[0].hold.author: is required"},
		{"an object key that is none", "template: agent}", "template: agent, created: [web]}", `cases.yaml: spec.sessions[0].created[0]: "web" is not`},
		{"a baseline that is not in force", "  now:", "  baselineVersion: v7\n  now:", "cases.yaml: spec.baselineVersion: is v7, and the policies put v1 in force"},
		{"a file that is not there", "  now:", "  policies: [policies.yaml]\n  now:", "read policies.yaml"},

		{"an unknown field of a policy", "serviceAccountName: agent", "serviceAccount: agent", `policy.yaml, document 2: unknown field "spec.sessionTemplates[0].serviceAccount"`},
		{"an object that is no policy", "kind: AgentPolicy", "kind: AgentPolicies", "policy.yaml, document 2: kind: stepbeyond.dev/v1alpha1 AgentPolicies is no policy"},
		{"a profile without a namespace", "{name: standard, namespace: stepbeyond-system}", "{name: standard}", "policy.yaml, document 2: metadata.namespace: Required value"},
		{"a namespace's own policy under another name", "namespace: stepbeyond-system", "namespace: checkout", "policy.yaml, document 2: metadata.name: outside stepbeyond-system the only name is default"},
		{"a baseline that is not embedded", "baselineVersion: v1\n", "baselineVersion: v9\n", "policy.yaml: spec.baselineVersion (v9): this binary embeds v1"},
		{
			"an expression that does not compile", "  approvals: {requirements: [{name: one-person}]}\n",
			"  rules: [{name: broken, class: ASK, match: {tools: [a]}, when: \"true &&\\n  objct == null\"}]\n",
			"policy.yaml, document 2: spec.rules[0].when (broken), line 2, column 3: undeclared reference to 'objct'",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := policytest.Load(edited(t, test.old, test.changed))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load: %v\nwant an error with: %s", err, test.want)
			}
		})
	}
}

// Proves M-6: what the API server refuses is refused here too.
func TestWhatTheSchemaRefusesIsNamed(t *testing.T) {
	rules := func(rule string) string { return "  rules: [" + rule + "]\n  sessionTemplates:\n" }
	for _, test := range []struct{ name, old, changed, want string }{
		{
			"a value that is none of an enumeration", "  sessionTemplates:\n", rules("{name: a, class: Ask, match: {tools: [a]}}"),
			`policy.yaml, document 2: spec.rules[0].class: Unsupported value: "Ask": supported values: "ASK", "FORBIDDEN"`,
		},
		{
			"a verb that admission does not report", "  sessionTemplates:\n",
			rules(`{name: a, class: ASK, match: {kubernetes: [{groups: [""], resources: [pods], verbs: [patch]}]}}`),
			"policy.yaml, document 2: spec.rules[0].match.kubernetes[0].verbs[0]: Invalid value: \"patch\": patch is not a verb here",
		},
		{
			"a field that is missing", "    user: {source: Fixed, name: ana@acme.example}\n", "",
			"policy.yaml, document 2: spec.sessionTemplates[0].user: Required value",
		},
		{
			"a name that does not have its pattern", "- name: agent\n", "- name: Agent One\n",
			`policy.yaml, document 2: spec.sessionTemplates[0].name: Invalid value: "Agent One": must be lower-case letters`,
		},
		{
			"a number beyond its bounds", "{requirements: [{name: one-person}]}", "{decideWithinSeconds: 2592001, requirements: [{name: one-person}]}",
			"policy.yaml, document 2: spec.approvals.decideWithinSeconds: Invalid value: 2592001: spec.approvals.decideWithinSeconds in body should be less than or equal to 2592000",
		},
		{
			"a number where a text is meant", "- name: agent\n", "- name: 7\n",
			`policy.yaml, document 2: spec.sessionTemplates[0].name: Invalid value: "integer": spec.sessionTemplates[0].name in body must be of type string: "integer"`,
		},
		{
			"a CEL rule that is broken", "{source: Fixed, name: ana@acme.example}", "{source: Fixed}",
			"policy.yaml, document 2: spec.sessionTemplates[0].user.name: Invalid value: is required with source Fixed",
		},
		{
			"two entries of one key", "[{name: standard, agentPolicyName: standard, floorEnforcement: Enforce}]",
			"[{name: a, agentPolicyName: a, floorEnforcement: Enforce}, {name: a, agentPolicyName: b, floorEnforcement: Audit}]",
			`policy.yaml: spec.profiles[1]: Duplicate value: {"name":"a"}`,
		},
		{
			"a list far beyond its bound, before a look at its entries", "  sessionTemplates:\n", rules(strings.Repeat("{}, ", 20_000)),
			"policy.yaml, document 2: spec.rules: Too many: 20000: must have at most 64 items",
		},
		{
			"an object's name that is no name", "metadata: {name: standard, namespace: stepbeyond-system}", "metadata: {name: Standard, namespace: stepbeyond-system}",
			`policy.yaml, document 2: metadata.name: Invalid value: "Standard": a lowercase RFC 1123 subdomain`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := policytest.Load(edited(t, test.old, test.changed))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load: %v\nwant an error with: %s", err, test.want)
			}
			if n := strings.Count(fmt.Sprint(err), "\n"); n != 0 {
				t.Errorf("one mistake is named %d times: %v", n+1, err)
			}
		})
	}
}

func TestEverythingThatIsWrongInADocumentIsNamedAtOnce(t *testing.T) {
	_, err := policytest.Load(edited(t, "user: {source: Fixed, name: ana@acme.example}\n    authority: {stages: [understand, propose, execute],",
		"usr: {source: Fixed, name: ana@acme.example}\n    authority: {stages: [understand, Execute],"))
	want := `policy.yaml, document 2: spec.sessionTemplates[0].authority.stages[1]: Unsupported value: "Execute": supported values: "understand", "propose", "execute", "publish"
policy.yaml, document 2: spec.sessionTemplates[0].user: Required value
policy.yaml, document 2: unknown field "spec.sessionTemplates[0].usr"`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

// TestThePoliciesThatShipAreRead reads config/samples as one platform.
func TestThePoliciesThatShipAreRead(t *testing.T) {
	const samples = "../../config/samples"
	folder := fstest.MapFS{}
	var files []string
	entries, err := os.ReadDir(samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(samples, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		folder[entry.Name()] = &fstest.MapFile{Data: content}
		files = append(files, entry.Name())
	}
	if len(files) < 4 {
		t.Fatalf("%s holds %d policies, want a cluster policy and three profiles", samples, len(files))
	}
	text := strings.Replace(cases, "  now:", "  policies: ["+strings.Join(files, ", ")+"]\n  now:", 1)
	folder[policytest.File] = &fstest.MapFile{Data: []byte(text)}
	if _, err := policytest.Load(folder); err != nil {
		t.Error(err)
	}
}

func TestAnOperationThatCannotBeReadIsNamed(t *testing.T) {
	for _, test := range []struct{ name, old, changed, want string }{
		{"a verb that admission does not report", "verb: delete", "verb: patch", `cases.yaml: spec.cases[1] (deleting one asks): operation.kubernetes.verb: "patch" is none of`},
		{"a creation without an object", "manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: checkout}}", "resource: configmaps", "operation.kubernetes.manifest: is required for create"},
		{"an update without what was before", "verb: create", "verb: update", "operation.kubernetes.old: is required for update"},
		{"a tool call without a name", "kubernetes: {verb: delete, resource: configmaps, namespace: checkout, name: web}", "tool: {description: a}", "operation.tool.name: is required"},
		{"a declared fact that does not exist", "kubernetes: {verb: delete, resource: configmaps, namespace: checkout, name: web}", "tool: {name: a, declared: {present: [Big]}}", `operation.tool.declared.present: unknown fact "Big"`},
		{"a declared stage that does not exist", "kubernetes: {verb: delete, resource: configmaps, namespace: checkout, name: web}", "tool: {name: a, declared: {stage: try}}", `operation.tool.declared.stage: unknown stage "try"`},
		{"two operations at once", "kubernetes: {verb: delete,", "tool: {name: a}\n      kubernetes: {verb: delete,", "operation: exactly one of kubernetes and tool is required"},
		{"a deletion without a resource", "resource: configmaps, ", "", "operation.kubernetes.resource: is required"},
		{"an object of a wrong shape", "kind: ConfigMap, metadata: {name: web, namespace: checkout}", "kind: Pod, metadata: {name: web, namespace: checkout}, spec: {containers: yes}", "operation.kubernetes: object.spec.containers: must be a list"},
		{"a manifest that is not there", "manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: checkout}}", "manifest: web.yaml", "operation.kubernetes.manifest: read web.yaml"},
		{"a manifest outside the folder", "manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: checkout}}", "manifest: ../web.yaml", "operation.kubernetes.manifest: read ../web.yaml"},
		{"a grant for a case that is not there", "asks\n    session: agent", "asks\n    grants: [{case: none}]\n    session: agent", `grants[0].case: there is no case "none"`},
		{"a grant in a state that does not exist", "asks\n    session: agent", "asks\n    grants: [{state: Open}]\n    session: agent", `grants[0].state: unknown state "Open"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			suite, err := policytest.Load(edited(t, test.old, test.changed))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = suite.Run(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Run: %v\nwant an error with: %s", err, test.want)
			}
		})
	}
}

func TestAnAnswerThatDiffersIsShownWithItsReasons(t *testing.T) {
	for _, test := range []struct {
		name, old, changed string
		position           int
		want               []string // the beginning of each line
	}{
		{"nothing differs", "name: example}", "name: other}", 1, nil},
		{"class and verdict", "{class: ASK, verdict: Pending, requirements: [one-person]}", "{class: AUTO, verdict: Allow}", 1, []string{
			"class: want AUTO, got ASK", "verdict: want Allow, got Pending",
			`the operation is delete configmaps of group "", checkout/web, origin Unknown`,
			"Destructive is Present, so ASK (baseline/delete-foreign): The object was not made by this session.",
			"Reversible is Unknown, so ASK",
		}},
		{"a requirement that is not there", "[one-person]}\n", "[one-person, two-people]}\n", 1, []string{
			"requirements: want exactly [one-person, two-people], got [standard/one-person]", "the operation", "Destructive", "Reversible",
			"requirement two-people is in no policy of the test",
		}},
		{"a requirement too many", "requirements: [one-person]}\n", "requirements: []}\n", 1, []string{
			"requirements: want exactly [], got [standard/one-person]", "the operation", "Destructive", "Reversible",
		}},
		{"a reason, a rule, a text and a next step", "requirements: [one-person]}\n", "reasons: [External], rules: [default/a], detail: [abc], next: xyz}\n", 1, []string{
			"reasons: want External, got [PermissionPending, Destructive, Reversible]",
			"rules: want default/a, got [baseline/delete-foreign]",
			`detail: want the text "abc", got "Pending: delete configmaps checkout/web needs approval by a person (Destructive;`,
			`next: want the text "xyz", got "go on with other work;`, "the operation", "Destructive", "Reversible",
			"rule default/a is in no policy of the test",
		}},
		{"what is allowed has no message", "{class: AUTO, verdict: Allow}", "{class: AUTO, verdict: Allow, next: xyz}", 0, []string{
			"next: want a message, got none, because the operation is allowed", "the operation",
		}},
		{"a disclosure that is not made", "{class: AUTO, verdict: Allow}", "{class: AUTO, verdict: Allow, disclosures: [foreign]}", 0, []string{
			"disclosures: want [foreign], got []", "the operation",
		}},
		{"a rule that would not have matched", "{class: AUTO, verdict: Allow}", "{class: AUTO, verdict: Allow, wouldBe: {class: ASK, rules: [a]}}", 0, []string{
			"wouldBe.class: want ASK, got ", "wouldBe.rules: want exactly [a], got []", "the operation",
		}},
		{"the second answer", "requirements: [one-person]}\n", "requirements: [one-person]}\n    wantAgain: {class: ASK, verdict: Allow}\n", 1, []string{
			"again: verdict: want Allow, got Pending", "again: the operation", "again: Destructive", "again: Reversible",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			suite, err := policytest.Load(edited(t, test.old, test.changed))
			if err != nil {
				t.Fatal(err)
			}
			results, err := suite.Run()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, difference := range results[test.position].Differences {
				got = append(got, difference.String())
			}
			got = append(got, results[test.position].Because...)
			for i := range got {
				if i < len(test.want) && strings.HasPrefix(got[i], test.want[i]) {
					got[i] = test.want[i]
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
