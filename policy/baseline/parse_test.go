package baseline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
)

func TestWhatIsWrongInABaselineIsNamed(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"text that is no YAML":           {"a: [", "decode"},
		"a field that does not exist":    {"version: v9\nlegend: x\n", "legend"},
		"a class that does not exist":    {"rules: [{name: r, class: MAYBE}]", `rule "r": unknown class "MAYBE"`},
		"a set that does not exist":      {"catalogue: [{name: e, absentSets: [harms]}]", `catalogue entry "e": unknown set "harms"`},
		"a present fact that is none":    {"catalogue: [{name: e, present: [Magic]}]", `catalogue entry "e": present: unknown fact "Magic"`},
		"an absent fact that is none":    {"catalogue: [{name: e, absent: [Magic]}]", `catalogue entry "e": absent: unknown fact "Magic"`},
		"an effect that does not exist":  {"catalogue: [{name: e, effect: Write}]", `catalogue entry "e": unknown effect "Write"`},
		"no version":                     {"rules: []", "version: is required"},
		"a set with a fact that is none": {"sets: {s: [Magic]}\ncatalogue: [{name: e, absentSets: [s]}]", `catalogue entry "e": absent: unknown fact "Magic"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Parse([]byte(test.source)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to say %q", err, test.want)
			}
		})
	}
}

func TestABaselineIsReadAsItStands(t *testing.T) {
	got, version, err := Parse([]byte(`
version: v9
sets: {some: [Cost, Sends]}
catalogue:
- {name: e, match: {kubernetes: [{groups: [apps], resources: [deployments], names: [web], verbs: [create], origins: [Person]}], tools: ["mcp:a"]}, when: "true", present: [Local], absent: [External], absentSets: [some], detail: d, recovery: r}
rules:
- {name: r, class: ASK, match: {tools: ["*"]}, when: "false", detail: d, recovery: r}
`))
	if err != nil {
		t.Fatal(err)
	}
	if version != "v9" || !strings.HasPrefix(got.ID.UID, "v9:") {
		t.Errorf("version %q, identity %q", version, got.ID.UID)
	}
	got.ID = policy.PolicyID{}
	want := policy.Policy{
		Catalogue: []policy.CatalogueEntry{{
			Name: "e", When: "true", Detail: "d", Recovery: "r", Present: []policy.Fact{policy.Local},
			Absent: []policy.Fact{policy.External, policy.Cost, policy.Sends},
			Match: policy.Match{Tools: []string{"mcp:a"}, Kubernetes: []policy.KubernetesSelector{{
				Groups: []string{"apps"}, Resources: []string{"deployments"}, Names: []string{"web"},
				Verbs: []policy.Verb{policy.VerbCreate}, Origins: []policy.Origin{policy.OriginPerson},
			}}},
		}},
		Rules: []policy.Rule{{
			Name: "r", Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: policy.Match{Tools: []string{"*"}},
			When: "false", Detail: "d", Recovery: "r",
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("baseline (-want +got):\n%s", diff)
	}
}
