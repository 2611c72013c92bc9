package policy_test

import (
	"fmt"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// Ten thousand rules, each for one name or prefix, are one engine, and each is found alone.
func TestOneOfTenThousandRulesIsFound(t *testing.T) {
	const count = 10_000
	var p policy.Policy
	for i := range count {
		name := fmt.Sprintf("name-%d", i)
		if i%2 == 1 {
			name = fmt.Sprintf("prefix-%d-*", i)
		}
		p.Rules = append(p.Rules, policy.Rule{
			Name: fmt.Sprintf("rule-%d", i), Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce,
			Match: policy.Match{Kubernetes: []policy.KubernetesSelector{{Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{name}}}},
		})
	}
	engine := compile(t, under(p))
	for i := 0; i < count; i += 97 {
		op := update(harmless())
		op.Target.Name = fmt.Sprintf("name-%d", i)
		if i%2 == 1 {
			op.Target.Name = fmt.Sprintf("prefix-%d-a", i)
		}
		d := engine.Decide(op, session(), now)
		if d.Class != policy.ClassForbidden || len(d.Details) != 1 || d.Details[0].Rule != fmt.Sprintf("default/rule-%d", i) {
			t.Errorf("%s: class %s for %+v, want FORBIDDEN for default/rule-%d alone", op.Target.Name, d.Class, d.Details, i)
		}
	}
	if d := engine.Decide(update(harmless()), session(), now); d.Class != policy.ClassAuto {
		t.Errorf("an object that no rule names has class %s, want AUTO", d.Class)
	}
}
