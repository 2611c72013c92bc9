package bench

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// near makes a request close to a random rule, so that most conjuncts hold and every one is sometimes the one that fails.
func near(random *rand.Rand, p Policy) Request {
	rule := &p[4+random.IntN(len(p)-4)]
	pick := func(texts []string) string { return texts[random.IntN(len(texts))] }
	r := Request{
		Capability: rule.Capability, Tool: rule.Tool, Verb: pick(rule.Verbs), Target: rule.TargetPrefix + "service",
		CostCents: rule.MaxCostCents - int64(random.IntN(2)), Reversible: random.IntN(2) == 0, Confidence: rule.MinConfidence,
	}
	switch random.IntN(12) {
	case 0:
		r.Capability = pick(capabilities)
	case 1:
		r.Tool = "tool-none"
	case 2:
		r.Verb = pick([]string{"create", "update", "delete", "connect"})
	case 3:
		r.Target = pick([]string{"team-1/", "team-2/service", "elsewhere", ""})
	case 4:
		r.CostCents = rule.MaxCostCents + 1
	case 5:
		r.Confidence = max(0, rule.MinConfidence-1)
	case 6:
		*pickBool(random, &r) = true
	}
	return r
}

func pickBool(random *rand.Rand, r *Request) *bool {
	return []*bool{&r.Escalates, &r.Exfiltrates, &r.External, &r.Credentials}[random.IntN(4)]
}

func TestEveryEngineGivesTheSameClass(t *testing.T) {
	const requests = 2000
	for _, n := range []int{10, 100} {
		rules, measured := NewPolicy(n, policy.ClassAuto)
		// Rules that overlap show how an engine joins them.
		for i := 4; i+1 < n; i += 6 {
			overlapping := rules[i]
			overlapping.Name, overlapping.Class, overlapping.TargetPrefix = "overlap-"+rules[i].Name, classes[(i/2)%len(classes)], rules[i].TargetPrefix+"ser"
			rules = append(rules, overlapping)
		}
		answers := map[string]func(*Request) (policy.Class, error){}
		for _, engine := range Engines() {
			class, err := engine.New(rules)
			if err != nil {
				t.Fatalf("%s: %v", engine.Name, err)
			}
			answers[engine.Name] = class
		}
		random := rand.New(rand.NewPCG(1, uint64(n)))
		reached := map[policy.Class]int{}
		several := 0
		for i := range requests {
			request := measured
			if i > 0 {
				request = near(random, rules)
			}
			want, matched := expected(rules, &request)
			reached[want]++
			if matched > 1 {
				several++
			}
			for engine, class := range answers {
				got, err := class(&request)
				if err != nil {
					t.Fatalf("%s, %+v: %v", engine, request, err)
				}
				if got != want {
					t.Errorf("%s under %d rules: class of %+v = %v, want %v", engine, n, request, got, want)
				}
			}
		}
		for _, class := range classes {
			if share := reached[class] * 100 / requests; share < 5 {
				t.Errorf("under %d rules %v is the class of %d %% of the requests, want at least 5 %%", n, class, share)
			}
		}
		if share := several * 100 / requests; share < 2 {
			t.Errorf("under %d rules %d %% of the requests match several rules, want at least 2 %%", n, share)
		}
	}
}

// expected is the definition of the policy: the strictest class of the rules that match, ASK when none does.
func expected(p Policy, r *Request) (policy.Class, int) {
	class, matched := policy.Class(0), 0
	for i := range p {
		if p[i].Matches(r) {
			class, matched = max(class, p[i].Class), matched+1
		}
	}
	if matched == 0 {
		return policy.ClassAsk, 0
	}
	return class, matched
}

func TestTheMeasuredRequestMatchesTheLastRuleButOneAndNoOther(t *testing.T) {
	for _, n := range []int{10, 100, 1000} {
		for _, class := range classes {
			rules, request := NewPolicy(n, class)
			if len(rules) != n {
				t.Fatalf("the policy has %d rules, want %d", len(rules), n)
			}
			if got, matched := expected(rules, &request); got != class || matched != 1 || !rules[n-2].Matches(&request) {
				t.Errorf("%d rules: class %v from %d rules, want %v from the last but one", n, got, matched, class)
			}
		}
	}
}

func TestEveryEngineGivesTheSameClassToAKubernetesRequest(t *testing.T) {
	answers := map[string]func(*KubeRequest) (policy.Class, error){}
	for _, engine := range KubeEngines() {
		class, err := engine.New(NewKubePolicy(100))
		if err != nil {
			t.Fatalf("%s: %v", engine.Name, err)
		}
		answers[engine.Name] = class
	}
	pod := func(r *KubeRequest) map[string]any { return at(r.Object, "spec", "template", "spec") }
	container := func(r *KubeRequest, i int) map[string]any { return pod(r)["containers"].([]any)[i].(map[string]any) }
	for name, test := range map[string]struct {
		object string
		change func(*KubeRequest)
		want   policy.Class
	}{
		"an own ordinary object is created":        {"cart", nil, policy.ClassAuto},
		"the rule for production asks":             {"production-cart", nil, policy.ClassAsk},
		"few replicas are below the rule's limit":  {"production-cart", func(r *KubeRequest) { at(r.Object, "spec")["replicas"] = int64(2) }, policy.ClassAuto},
		"development is left alone":                {"production-cart", func(r *KubeRequest) { at(r.Object, "metadata", "labels")["tier"] = "development" }, policy.ClassAuto},
		"an object without labels is not left out": {"production-cart", func(r *KubeRequest) { delete(at(r.Object, "metadata"), "labels") }, policy.ClassAsk},
		"host network is forbidden":                {"cart", func(r *KubeRequest) { pod(r)["hostNetwork"] = true }, policy.ClassForbidden},
		"host PIDs are forbidden in production":    {"production-cart", func(r *KubeRequest) { pod(r)["hostPID"] = true }, policy.ClassForbidden},
		"a second privileged container is forbidden": {"cart", func(r *KubeRequest) {
			at(container(r, 1), "securityContext")["privileged"] = true
		}, policy.ClassForbidden},
		"a host port asks": {"cart", func(r *KubeRequest) {
			container(r, 0)["ports"].([]any)[1].(map[string]any)["hostPort"] = int64(9090)
		}, policy.ClassAsk},
		"a kind that nothing names asks": {"cart", func(r *KubeRequest) {
			r.Group, r.Resource, r.Kind = "acme.example", "gadgets", ""
			delete(r.Object, "kind")
		}, policy.ClassAsk},
		"a rule of another kind forbids": {"team-1-cart", func(r *KubeRequest) {
			r.Operation, r.OldObject = "UPDATE", r.Object
			r.Group, r.Resource, r.Kind = "group-0.acme.example", "widgets0", ""
			delete(r.Object, "kind")
		}, policy.ClassForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := Deployment(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(&request)
			}
			for engine, class := range answers {
				got, err := class(&request)
				if err != nil {
					t.Fatalf("%s: %v", engine, err)
				}
				if got != test.want {
					t.Errorf("%s: class = %v, want %v", engine, got, test.want)
				}
			}
		})
	}
}

func TestTheMeasuredKubernetesRequestMatchesTheLastRuleButOneOrNone(t *testing.T) {
	for _, n := range sizes {
		rules := NewKubePolicy(n)
		for name, want := range map[string][]int{"cart": nil, "production-cart": {n - 4 - 2}} {
			request, err := Deployment(name)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for i := range rules {
				if rules[i].Matches(&request) {
					got = append(got, i)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("of %d rules %v match %s, want %v", n, got, name, want)
			}
		}
	}
}
