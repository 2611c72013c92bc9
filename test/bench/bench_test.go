package bench

import (
	"fmt"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

var (
	sizes = []int{10, 100, 1000}
	paths = []policy.Class{policy.ClassAuto, policy.ClassAsk}
)

// BenchmarkRules is one answer under the equal policy: the request's conversion, every rule, the strictest class.
func BenchmarkRules(b *testing.B) {
	for _, n := range sizes {
		for _, path := range paths {
			for _, engine := range Engines() {
				b.Run(fmt.Sprintf("rules=%d/path=%v/engine=%s", n, path, engine.Name), func(b *testing.B) {
					rules, request := NewPolicy(n, path)
					class, err := engine.New(rules)
					if err != nil {
						b.Fatal(err)
					}
					measure(b, func() (policy.Class, error) { return class(&request) }, path)
				})
			}
		}
	}
}

// BenchmarkKubernetes is one whole decision about the creation of a Deployment: for Step Beyond its facts and the
// decision, for the others the conversion of the object and the evaluation.
func BenchmarkKubernetes(b *testing.B) {
	for _, n := range sizes {
		for _, path := range paths {
			for _, engine := range KubeEngines() {
				b.Run(fmt.Sprintf("rules=%d/path=%v/engine=%s", n, path, engine.Name), func(b *testing.B) {
					request, err := Deployment(DeploymentName(path))
					if err != nil {
						b.Fatal(err)
					}
					class, err := engine.New(NewKubePolicy(n))
					if err != nil {
						b.Fatal(err)
					}
					measure(b, func() (policy.Class, error) { return class(&request) }, path)
				})
			}
		}
	}
}

// measure runs answers and makes sure that what is measured is the right answer.
func measure(b *testing.B, answer func() (policy.Class, error), want policy.Class) {
	b.ReportAllocs()
	for b.Loop() {
		got, err := answer()
		if err != nil || got != want {
			b.Fatalf("class = %v, %v, want %v", got, err, want)
		}
	}
}

// BenchmarkOneKind is a decision under rules that all select the kind and verb of the request and differ in the name,
// which is where an index by kind helps least. None matches.
func BenchmarkOneKind(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			rules := NewKubePolicy(n)
			for i := range rules {
				rules[i].Group, rules[i].Resource, rules[i].NamePrefix = "apps", "deployments", fmt.Sprintf("team-%d-", i)
			}
			class, err := newKubeStepBeyond(rules)
			if err != nil {
				b.Fatal(err)
			}
			request, err := Deployment(DeploymentName(policy.ClassAuto))
			if err != nil {
				b.Fatal(err)
			}
			measure(b, func() (policy.Class, error) { return class(&request) }, policy.ClassAuto)
		})
	}
}
