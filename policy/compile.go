package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy/expr"
)

// Problem is why a part of a policy cannot be compiled. The policy that holds it must not come into force.
type Problem struct {
	Policy PolicyID
	// Field is the path of the bad field below the policy's spec, such as rules[2].when.
	Field string
	// Rule is the name of the rule or catalogue entry.
	Rule string
	// Line and Column are 1-based places in an expression; 0 when the problem is not in one.
	Line, Column int
	Message      string
}

// Error names field, rule and place.
func (p Problem) Error() string {
	where := fmt.Sprintf("%s (%s)", p.Field, p.Rule)
	if p.Line > 0 {
		where += fmt.Sprintf(", line %d, column %d", p.Line, p.Column)
	}
	return where + ": " + p.Message
}

// Engine decides operations under one compiled set of policies. It is immutable and safe for concurrent use.
type Engine struct {
	baseline   *compiled
	cluster    []*compiled
	profiles   map[string]*compiled
	namespaces map[string]namespaceLayer
}

type namespaceLayer struct {
	profile *compiled // nil when the namespace's profile is not in the set
	own     *compiled // nil when it has none
	// all that counts for operations of the namespace's sessions inside it: most operations are, and need no list made.
	all []*compiled
	// ids and identity of all.
	ids      []PolicyID
	identity string
}

// compiled is one policy with its index.
type compiled struct {
	id        PolicyID
	prefix    string
	approvals Approvals
	rules     []compiledRule
	entries   []compiledEntry
	ruleIndex selectorIndex
	factIndex selectorIndex
}

type compiledRule struct {
	Rule
	fullName string
	when     *expr.Program // nil means always
}

type compiledEntry struct {
	CatalogueEntry
	fullName string
	when     *expr.Program // nil means always
}

// Compile builds an engine. The problems are those of all policies; with any of them the engine is nil, because a
// policy that is half in force is worse than the last one that was whole.
func Compile(set Set) (*Engine, []Problem) {
	var problems []Problem
	build := func(p *Policy) *compiled {
		c, found := compilePolicy(p)
		problems = append(problems, found...)
		return c
	}
	engine := &Engine{
		baseline:   build(&set.Baseline),
		profiles:   make(map[string]*compiled, len(set.Profiles)),
		namespaces: make(map[string]namespaceLayer, len(set.Namespaces)),
	}
	for i := range set.Cluster {
		engine.cluster = append(engine.cluster, build(&set.Cluster[i]))
	}
	// The order in which objects arrive must not show in any answer.
	slices.SortFunc(engine.cluster, func(a, b *compiled) int { return strings.Compare(a.prefix, b.prefix) })
	for name, profile := range set.Profiles {
		engine.profiles[name] = build(&profile)
	}
	for name, namespace := range set.Namespaces {
		layer := namespaceLayer{profile: engine.profiles[namespace.Profile]}
		if namespace.Policy != nil {
			layer.own = build(namespace.Policy)
		}
		layer.all = engine.join(layer)
		layer.ids, layer.identity = identityOf(layer.all)
		engine.namespaces[name] = layer
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return engine, nil
}

func compilePolicy(p *Policy) (*compiled, []Problem) {
	c := &compiled{id: p.ID, prefix: p.ID.RulePrefix(), approvals: p.Approvals}
	var problems []Problem
	program := func(field, name, source string) *expr.Program {
		if source == "" {
			return nil
		}
		compiledExpression, err := expr.Compile(source)
		if err != nil {
			problem := Problem{Policy: p.ID, Field: field, Rule: name, Message: err.Error()}
			var syntax *expr.SyntaxError
			if errors.As(err, &syntax) {
				problem.Line, problem.Column, problem.Message = syntax.Line, syntax.Column, syntax.Message
			}
			problems = append(problems, problem)
		}
		return compiledExpression
	}
	for i, rule := range p.Rules {
		if rule.Class != ClassAsk && rule.Class != ClassForbidden {
			problems = append(problems, Problem{Policy: p.ID, Field: fmt.Sprintf("rules[%d].class", i), Rule: rule.Name,
				Message: "a rule tightens: the class must be ASK or FORBIDDEN"})
		}
		when := program(fmt.Sprintf("rules[%d].when", i), rule.Name, rule.When)
		c.rules = append(c.rules, compiledRule{Rule: rule, fullName: c.prefix + "/" + rule.Name, when: when})
		c.ruleIndex.add(i, &rule.Match)
	}
	for i, entry := range p.Catalogue {
		when := program(fmt.Sprintf("catalogue[%d].when", i), entry.Name, entry.When)
		c.entries = append(c.entries, compiledEntry{CatalogueEntry: entry, fullName: c.prefix + "/" + entry.Name, when: when})
		c.factIndex.add(i, &entry.Match)
	}
	return c, problems
}

// Governs tells whether the namespace is part of the set with a profile that is there. An operation in a governed
// namespace without one must be refused.
func (e *Engine) Governs(namespace string) bool {
	return e.namespaces[namespace].profile != nil
}

// layers lists the policies that count for an operation: the baseline, the cluster's, and those of the session's and
// of the target's namespace, each once (design section 4).
func (e *Engine) layers(sessionNamespace, targetNamespace string) []*compiled {
	session := e.namespaces[sessionNamespace]
	if session.all != nil && (targetNamespace == "" || targetNamespace == sessionNamespace) {
		return session.all
	}
	return e.join(session, e.namespaces[targetNamespace])
}

func (e *Engine) join(namespaces ...namespaceLayer) []*compiled {
	layers := make([]*compiled, 0, len(e.cluster)+1+2*len(namespaces))
	layers = append(append(layers, e.baseline), e.cluster...)
	for _, layer := range namespaces {
		for _, c := range []*compiled{layer.profile, layer.own} {
			if c != nil && !slices.Contains(layers, c) {
				layers = append(layers, c)
			}
		}
	}
	return layers
}

// Identity is the policy identity of operations of that session namespace on that target namespace: the policies that
// contribute, and a digest over their UIDs and generations and the baseline (design section 7).
func (e *Engine) Identity(sessionNamespace, targetNamespace string) ([]PolicyID, string) {
	ids, identity := e.identity(sessionNamespace, targetNamespace)
	return slices.Clone(ids), identity
}

// identity is Identity with a shared list.
func (e *Engine) identity(sessionNamespace, targetNamespace string) ([]PolicyID, string) {
	if session := e.namespaces[sessionNamespace]; session.all != nil && (targetNamespace == "" || targetNamespace == sessionNamespace) {
		return session.ids, session.identity
	}
	return identityOf(e.layers(sessionNamespace, targetNamespace))
}

func identityOf(layers []*compiled) ([]PolicyID, string) {
	ids := make([]PolicyID, 0, len(layers))
	for _, c := range layers {
		ids = append(ids, c.id)
	}
	slices.SortFunc(ids, comparePolicyIDs)
	hash := sha256.New()
	for _, id := range ids {
		fmt.Fprintf(hash, "%q %q %q %q %d\n", id.Kind, id.Namespace, id.Name, id.UID, id.Generation)
	}
	return ids, "v1:" + hex.EncodeToString(hash.Sum(nil))
}

func comparePolicyIDs(a, b PolicyID) int {
	if c := strings.Compare(a.Kind, b.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
