package authority_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity/authority"
)

// write is one write of an object.
type write struct {
	group, resource, name string
	verb                  v1alpha1.Verb
}

// covers is what KubernetesAuthority says of itself, read anew.
func covers(a *v1alpha1.Authority, w write) bool {
	matches := func(patterns []string, value string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			prefix, wild := strings.CutSuffix(p, "*")
			return p == value || wild && strings.HasPrefix(value, prefix)
		})
	}
	return len(a.Kubernetes) == 0 || slices.ContainsFunc(a.Kubernetes, func(k v1alpha1.KubernetesAuthority) bool {
		return matches(k.Groups, w.group) && matches(k.Resources, w.resource) && slices.Contains(k.Verbs, w.verb) &&
			(len(k.Names) == 0 || matches(k.Names, w.name))
	})
}

var (
	groups    = []string{"", "apps", "batch", "*"}
	resources = []string{"pods", "pods/exec", "pods/*", "jobs", "jobs/status", "*"}
	names     = []string{"web", "web-1", "web-*", "w*", "api", "*"}
	verbs     = []v1alpha1.Verb{v1alpha1.VerbCreate, v1alpha1.VerbUpdate, v1alpha1.VerbDelete}
)

func draw(t *rapid.T, label string) *v1alpha1.Authority {
	a := &v1alpha1.Authority{
		Stages:       pick(t, label+" stages", 1, []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StagePropose, v1alpha1.StageExecute, v1alpha1.StagePublish}),
		Capabilities: pick(t, label+" capabilities", 1, []v1alpha1.Capability{v1alpha1.CapabilityReadContext, v1alpha1.CapabilityExecuteLocal, v1alpha1.CapabilityPublishExternal}),
	}
	for range rapid.IntRange(0, 2).Draw(t, label+" selectors") {
		a.Kubernetes = append(a.Kubernetes, v1alpha1.KubernetesAuthority{
			Groups: pick(t, label+" groups", 1, groups), Resources: pick(t, label+" resources", 1, resources),
			Names: pick(t, label+" names", 0, names), Verbs: pick(t, label+" verbs", 1, verbs),
		})
	}
	if rapid.Bool().Draw(t, label+" has budgets") {
		a.Budgets = &v1alpha1.Budgets{MaxMutations: new(rapid.Int32Range(0, 3).Draw(t, label+" mutations"))}
	}
	return a
}

func pick[T any](t *rapid.T, label string, least int, of []T) []T {
	var picked []T
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(of)-1), least, 3, rapid.ID[int]).Draw(t, label) {
		picked = append(picked, of[i])
	}
	return picked
}

// Proves G-3: what two authorities have in common is within both, and is all that they have in common.
func TestWhatTwoAuthoritiesHaveInCommonIsWithinBothAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		met, ok := authority.Meet(a, b)
		shared := false
		for _, group := range []string{"", "apps", "batch", "acme.example"} {
			for _, resource := range []string{"pods", "pods/exec", "pods/log", "jobs", "jobs/status", "deployments"} {
				for _, name := range []string{"web", "web-1", "web-2", "worker", "api", "x"} {
					for _, verb := range verbs {
						w := write{group, resource, name, verb}
						both := covers(a, w) && covers(b, w)
						shared = shared || both
						if ok && covers(&met, w) != both {
							t.Fatalf("%+v: in common %v, met covers %v\na %+v\nb %+v\nmet %+v", w, both, !both, a, b, met)
						}
					}
				}
			}
		}
		if !ok {
			stages := slices.ContainsFunc(a.Stages, func(s v1alpha1.Stage) bool { return slices.Contains(b.Stages, s) })
			capabilities := slices.ContainsFunc(a.Capabilities, func(c v1alpha1.Capability) bool { return slices.Contains(b.Capabilities, c) })
			if stages && capabilities && shared {
				t.Fatalf("nothing is met, and something is in common\na %+v\nb %+v", a, b)
			}
			return
		}
		for name, bound := range map[string]*v1alpha1.Authority{"a": a, "b": b} {
			if found := (authority.Bound{Authority: bound, Name: name}).Check(field.NewPath("spec"), &met); len(found) > 0 {
				t.Fatalf("not within %s: %v\na %+v\nb %+v\nmet %+v", name, found, a, b, met)
			}
		}
	})
}

func TestWhatIsMetSharesNothingWithItsParts(t *testing.T) {
	a := &v1alpha1.Authority{
		Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal},
		Kubernetes: []v1alpha1.KubernetesAuthority{{Groups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}},
		Budgets:    &v1alpha1.Budgets{MaxMutations: new(int32(3))},
	}
	b := &v1alpha1.Authority{Stages: a.Stages, Capabilities: a.Capabilities}
	met, _ := authority.Meet(a, b)
	met.Kubernetes[0].Groups[0], *met.Budgets.MaxMutations = "changed", 9
	if a.Kubernetes[0].Groups[0] != "" || *a.Budgets.MaxMutations != 3 {
		t.Error("a change of what is met changes its parts")
	}
}
