package bench

import "stepbeyond.dev/stepbeyond/policy"

// newScan is the policy as a plain loop over structs.
func newScan(p Policy) (func(*Request) (policy.Class, error), error) {
	return func(r *Request) (policy.Class, error) {
		var class policy.Class
		for i := range p {
			if p[i].Matches(r) {
				class = max(class, p[i].Class)
			}
		}
		return strictest(class), nil
	}, nil
}

// newIndex is the policy as one would write it by hand if it were large: a map from capability and tool to its rules.
func newIndex(p Policy) (func(*Request) (policy.Class, error), error) {
	type key struct{ capability, tool string }
	var fixed []*Rule
	byTool := map[key][]*Rule{}
	for i := range p {
		if rule := &p[i]; rule.Attribute != "" {
			fixed = append(fixed, rule)
		} else {
			byTool[key{rule.Capability, rule.Tool}] = append(byTool[key{rule.Capability, rule.Tool}], rule)
		}
	}
	return func(r *Request) (policy.Class, error) {
		var class policy.Class
		for _, rules := range [2][]*Rule{fixed, byTool[key{r.Capability, r.Tool}]} {
			for _, rule := range rules {
				if rule.Matches(r) {
					class = max(class, rule.Class)
				}
			}
		}
		return strictest(class), nil
	}, nil
}
