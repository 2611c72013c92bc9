package bench

import (
	"fmt"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// Attribute is what a fixed rule looks at.
type Attribute string

const (
	Escalates   Attribute = "escalates"
	Exfiltrates Attribute = "exfiltrates"
	External    Attribute = "external"
	Credentials Attribute = "credentials"
)

// Request is what every engine is asked.
type Request struct {
	Capability string
	Tool       string
	Verb       string
	Target     string
	CostCents  int64
	Reversible bool
	// Confidence in percent.
	Confidence int64

	Escalates, Exfiltrates, External, Credentials bool
}

// Has tells whether the request has the attribute.
func (r *Request) Has(a Attribute) bool {
	switch a {
	case Escalates:
		return r.Escalates
	case Exfiltrates:
		return r.Exfiltrates
	case External:
		return r.External
	default:
		return r.Credentials
	}
}

// Rule gives its class to every request that it matches.
type Rule struct {
	Name  string
	Class policy.Class
	// Attribute makes it a fixed rule; then everything below is empty.
	Attribute Attribute

	Capability   string
	Tool         string
	Verbs        []string
	TargetPrefix string
	MaxCostCents int64
	// MinConfidence in percent is asked of a request that is not reversible; 0 leaves the conjunct out.
	MinConfidence int64
}

// Policy is a list of rules; the strictest that matches wins, and no match is ASK.
type Policy []Rule

// rulesPerTool is how many selector rules speak of one tool.
const rulesPerTool = 4

var (
	capabilities = []string{"execute_local", "publish_external", "read_project"}
	verbSets     = [][]string{{"create", "update"}, {"update", "delete"}, {"create", "delete", "connect"}}
	classes      = []policy.Class{policy.ClassAuto, policy.ClassAsk, policy.ClassAutoWithDisclosure, policy.ClassForbidden}
)

// NewPolicy makes the equal policy of n rules, at least 10, and the request that matches its last rule but one and no
// other. That rule has the given class.
func NewPolicy(n int, class policy.Class) (Policy, Request) {
	rules := Policy{
		{Name: "escalates", Class: policy.ClassForbidden, Attribute: Escalates},
		{Name: "exfiltrates", Class: policy.ClassForbidden, Attribute: Exfiltrates},
		{Name: "external", Class: policy.ClassAsk, Attribute: External},
		{Name: "credentials", Class: policy.ClassAsk, Attribute: Credentials},
	}
	for i := range n - len(rules) {
		rule := Rule{
			Name: fmt.Sprintf("rule-%d", i), Class: classes[i%len(classes)],
			Capability: capabilities[(i/rulesPerTool)%len(capabilities)], Tool: fmt.Sprintf("tool-%d", i/rulesPerTool),
			Verbs: verbSets[i%len(verbSets)], TargetPrefix: fmt.Sprintf("team-%d/", i%rulesPerTool), MaxCostCents: int64(100 + i%5*100),
		}
		if i%3 != 0 {
			rule.MinConfidence = int64(60 + i%4*10)
		}
		rules = append(rules, rule)
	}
	matched := &rules[n-2]
	matched.Class, matched.MinConfidence = class, 80
	return rules, Request{
		Capability: matched.Capability, Tool: matched.Tool, Verb: matched.Verbs[0], Target: matched.TargetPrefix + "service",
		CostCents: matched.MaxCostCents - 1, Confidence: 90,
	}
}

// Matches tells whether the rule matches the request.
func (rule *Rule) Matches(r *Request) bool {
	if rule.Attribute != "" {
		return r.Has(rule.Attribute)
	}
	return r.Capability == rule.Capability && r.Tool == rule.Tool && slices.Contains(rule.Verbs, r.Verb) &&
		strings.HasPrefix(r.Target, rule.TargetPrefix) && r.CostCents <= rule.MaxCostCents &&
		(rule.MinConfidence == 0 || r.Reversible || r.Confidence >= rule.MinConfidence)
}

// Engine is one of those that are compared; New makes it from a policy, and class answers a request.
type Engine struct {
	Name string
	New  func(Policy) (class func(*Request) (policy.Class, error), err error)
}

// Engines are all that are compared. Step Beyond is the first.
func Engines() []Engine {
	return []Engine{
		{StepBeyond, newStepBeyond},
		{"go-scan", newScan},
		{"go-index", newIndex},
		{"cel-go", newCELGo},
		{OPA, newOPA},
		{Cedar, newCedar},
		{"cedar-go-scoped", newCedarScoped},
		{"casbin", newCasbin},
	}
}

// Names of the engines that bounds are stated about.
const (
	StepBeyond = "stepbeyond"
	OPA        = "opa"
	Cedar      = "cedar-go"
)

// strictest joins the classes of the rules that matched, of which none is class 0.
func strictest(class policy.Class) policy.Class {
	if class == 0 {
		return policy.ClassAsk
	}
	return class
}
