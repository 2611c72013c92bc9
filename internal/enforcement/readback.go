package enforcement

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// Governed is the name of the match condition that holds the scope, in every policy of the floor and in the enforcing
// webhook entry. The further shards of a large scope follow as governed-2, governed-3 and so on.
const Governed = "governed"

// conditions holds one match condition for each shard.
func (s shards) conditions(name, further string) []*admissionregistration.MatchConditionApplyConfiguration {
	var all []*admissionregistration.MatchConditionApplyConfiguration
	for i, part := range s {
		all = append(all, condition(numbered(name, i), part.expression(further)))
	}
	return all
}

func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i+1)
}

// GovernedExpressions are the expressions of the scope among the match conditions of a live policy or webhook entry, for
// ReadBack; none when it holds no scope.
func GovernedExpressions(conditions []admissionregistrationv1.MatchCondition) []string {
	var expressions []string
	for {
		i := slices.IndexFunc(conditions, func(c admissionregistrationv1.MatchCondition) bool {
			return c.Name == numbered(Governed, len(expressions))
		})
		if i < 0 {
			return expressions
		}
		expressions = append(expressions, conditions[i].Expression)
	}
}

// ReadBack is the scope that the expressions of a live configuration hold, sorted, without the canary's namespace. What
// Expressions would not write for that scope is ErrForeignExpression, but for where it is cut into shards: another
// version may have cut it elsewhere.
func ReadBack(expressions ...string) (Scope, error) {
	whole, before := shard{}, ""
	for i, expression := range expressions {
		part, err := readShard(expression)
		if err != nil {
			return Scope{}, fmt.Errorf("shard %d: %w", i+1, err)
		}
		if part.from != before || (part.before == "") != (i == len(expressions)-1) {
			return Scope{}, fmt.Errorf("shard %d: %w: its range does not follow that of the shard before it, or ends early", i+1, ErrForeignExpression)
		}
		before = part.before
		whole.users = append(whole.users, part.users...)
		whole.namespaces = append(whole.namespaces, part.namespaces...)
		whole.exempt = append(whole.exempt, part.exempt...)
	}
	whole = whole.sorted()
	if !slices.Contains(whole.namespaces, CanaryNamespace) {
		return Scope{}, fmt.Errorf("%w: it does not govern %s", ErrForeignExpression, CanaryNamespace)
	}
	return whole.scope()
}

// scope checks every entry.
func (p shard) scope() (Scope, error) {
	s := Scope{
		Users:      orNil(p.users),
		Namespaces: orNil(slices.DeleteFunc(slices.Clone(p.namespaces), func(ns string) bool { return ns == CanaryNamespace })),
	}
	for _, username := range p.exempt {
		account, ok := parseServiceAccount(username)
		if !ok {
			return Scope{}, fmt.Errorf("%w: exempt %q is not a ServiceAccount", ErrForeignExpression, username)
		}
		s.Exempt = append(s.Exempt, account)
	}
	if err := s.validate(); err != nil {
		return Scope{}, fmt.Errorf("%w: %w", ErrForeignExpression, err)
	}
	return s, nil
}

// readShard wants the expression byte for byte as it would be written for the lists that it holds, and the lists to
// speak of nobody outside its range.
func readShard(expression string) (shard, error) {
	var p shard
	r := reader{rest: expression}
	r.literal(known)
	if r.has(below) {
		r.json(&p.from)
		r.literal(or)
	}
	if r.has(atLeast) {
		r.json(&p.before)
		r.literal(or)
	}
	for _, list := range []struct {
		introduction string
		into         *[]string
	}{{inUsers, &p.users}, {inAccounts, &p.namespaces}, {notExempt, &p.exempt}} {
		r.literal(list.introduction)
		r.json(list.into)
	}
	if r.err != nil {
		return shard{}, fmt.Errorf("%w: %w", ErrForeignExpression, r.err)
	}
	if p.sorted().expression("") != expression {
		return shard{}, fmt.Errorf("%w: it differs from the expression of the scope that it lists", ErrForeignExpression)
	}
	s, err := p.scope()
	if err != nil {
		return shard{}, err
	}
	for _, g := range s.groups() {
		implied := g.key == firstServiceAccount(CanaryNamespace) && !slices.Contains(p.namespaces, CanaryNamespace)
		if !implied && !p.covers(g.key) {
			return shard{}, fmt.Errorf("%w: %q is outside its range", ErrForeignExpression, g.key)
		}
	}
	return p, nil
}

var errUnexpected = errors.New("unexpected text")

// reader takes an expression apart from its beginning; after an error it does nothing more.
type reader struct {
	rest string
	err  error
}

// has takes the text away if the rest begins with it.
func (r *reader) has(text string) bool {
	rest, found := strings.CutPrefix(r.rest, text)
	if r.err == nil && found {
		r.rest = rest
	}
	return r.err == nil && found
}

func (r *reader) literal(text string) {
	if r.err == nil && !r.has(text) {
		r.err = fmt.Errorf("%w instead of %q", errUnexpected, text)
	}
}

func (r *reader) json(into any) {
	if r.err != nil {
		return
	}
	decoder := json.NewDecoder(strings.NewReader(r.rest))
	if r.err = decoder.Decode(into); r.err == nil {
		r.rest = r.rest[decoder.InputOffset():]
	}
}

// orNil makes an empty list the omitted one, so that scopes can be compared.
func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
