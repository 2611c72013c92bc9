package scope

import (
	"errors"
	"slices"
	"strings"
)

// role is what a word says about a limiter near it; a word can have several.
type role uint32

const (
	roleChange role = 1 << iota
	roleRead
	roleContent
	roleRelative
	roleFact
	roleSubject
	roleWish
	roleAddress
	roleAuxiliary
	roleLead
	roleCondition
	roleMethod
	rolePreposition
	roleQuantity
	roleArticle
	roleDone
	roleQuestion
	roleNegation
	roleDoubt
	rolePast
)

// cues is a Context in numbers.
type cues struct {
	plain, exact map[int32]role
	verbFirst    bool
	pastEndings  []string
}

// cues compiles the groups of words.
func (c *compiler) cues(from Context, into *cues) error {
	*into = cues{plain: map[int32]role{}, exact: map[int32]role{}, verbFirst: from.VerbFirst, pastEndings: from.PastEndings}
	for _, ending := range from.PastEndings {
		if ending == "" || len(ending) > len(token{}.tail) {
			return errors.New("context.pastEndings: an ending has one to three bytes")
		}
	}
	groups := []struct {
		name string
		role role
		list []string
	}{
		{"change", roleChange, from.Change}, {"read", roleRead, from.Read}, {"content", roleContent, from.Content}, {"relative", roleRelative, from.Relative},
		{"fact", roleFact, from.Fact}, {"subject", roleSubject, from.Subject}, {"wish", roleWish, from.Wish}, {"address", roleAddress, from.Address},
		{"auxiliary", roleAuxiliary, from.Auxiliary}, {"lead", roleLead, from.Lead}, {"condition", roleCondition, from.Condition},
		{"method", roleMethod, from.Method}, {"preposition", rolePreposition, from.Preposition}, {"quantity", roleQuantity, from.Quantity}, {"article", roleArticle, from.Article},
		{"done", roleDone, from.Done}, {"question", roleQuestion, from.Question}, {"negation", roleNegation, from.Negation}, {"doubt", roleDoubt, from.Doubt}, {"past", rolePast, from.Past},
	}
	for _, g := range groups {
		var w words
		if err := c.field("context."+g.name, g.list, &w); err != nil {
			return err
		}
		for word := range w.plain {
			into.plain[word] |= g.role
		}
		for word := range w.exact {
			into.exact[word] |= g.role
		}
	}
	return nil
}

// rolesOf looks the roles of every token up once.
func (c cues) rolesOf(tokens []token) []role {
	roles := make([]role, len(tokens))
	for i, k := range tokens {
		roles[i] = c.plain[k.plain] | c.exact[k.exact]
	}
	return roles
}

// is says that the word at a place, which may lie outside the text, has one of the roles.
func (r reader) is(at int, any role) bool {
	return at >= 0 && at < len(r.tokens) && r.roles[at]&any != 0
}

// after and before look at the neighbour in the same clause.
func (r reader) after(at int, any role) bool { return !r.startsClause(at+1) && r.is(at+1, any) }

func (r reader) before(at int, any role) bool { return !r.startsClause(at) && r.is(at-1, any) }

func (r reader) startsClause(at int) bool { return at <= 0 || endsClause(r.tokens, at) }

// opensClause: at most a conjunction stands between the beginning of the clause and the token.
func (r reader) opensClause(at int) bool { return r.startsClause(at) || r.is(at-1, roleLead) }

// verbCanStand: at this place a word that is noun and verb is an instruction.
func (r reader) verbCanStand(at int) bool {
	return !r.lexicon.context.verbFirst || r.opensClause(at) || r.is(at-1, roleAddress|roleAuxiliary|roleNegation)
}

// follows says that a word with one of the roles stands behind the token in its clause.
func (r reader) follows(at int, any role) bool {
	for i := at + 1; i-at < window && !r.startsClause(i); i++ {
		if r.is(i, any) {
			return true
		}
	}
	return false
}

// isConditional: a condition in the limiter's clause makes it part of the condition ("only restart it if it fails").
func (r reader) isConditional(at int) bool {
	for i := at; at-i < window && !r.startsClause(i); i-- {
		if r.is(i-1, roleCondition) {
			return true
		}
	}
	return r.follows(at, roleCondition)
}

func (r reader) isQuantity(at int) bool {
	if r.startsClause(at) {
		return false
	}
	ending := r.tokens[at].ending()
	return r.is(at, roleQuantity) || ending != "" && strings.Trim(ending, "0123456789") == ""
}

// limits says that a limiter belongs to the agent's work and not to its content. The nearest telling word in front of it in the
// clause decides; without one, what follows does.
func (r reader) limits(at int) bool {
	switch {
	case r.before(at, roleMethod|rolePreposition) && r.isQuantity(at+1):
		return false
	case r.opensClause(at):
		return r.opensInstruction(at)
	case r.is(at-1, roleRelative):
		return r.follows(at, roleDone)
	case r.is(at-1, roleMethod):
		return false
	}
	for i := at - 1; at-i < window; i-- {
		switch {
		case r.is(i, roleAddress):
			return i < at-1 || !r.after(at, roleFact)
		case r.is(i, roleChange) && r.verbCanStand(i):
			return true
		case r.is(i, roleSubject):
			return r.after(at, roleWish)
		case r.is(i, roleContent|roleRelative|roleFact) || r.is(i, roleRead) && r.verbCanStand(i):
			return false
		}
		if r.startsClause(i) {
			break
		}
	}
	return r.limitsUnknown(at)
}

// opensInstruction judges a limiter at the beginning of a clause by what follows: an instruction ("only restart web"), a
// fragment ("only the web Deployment") or a statement ("only root can use this"), which limits the work only if
// it speaks of work ("only web may be changed").
func (r reader) opensInstruction(at int) bool {
	switch {
	case r.after(at, roleChange|roleRead|roleAddress):
		return true
	case r.after(at, roleContent):
		return false
	}
	return r.follows(at, roleDone) || !r.follows(at, roleFact|roleAuxiliary)
}

// limitsUnknown judges a limiter that no telling word precedes. A verb that no lexicon can list opens the clause ("compress
// only text files"), or the limiter ends it ("web only").
func (r reader) limitsUnknown(at int) bool {
	switch {
	case r.startsClause(at + 1):
		return true
	case r.is(at-1, roleChange):
		return !r.is(at+1, rolePreposition)
	case r.startsClause(at - 1):
		return !r.is(at+1, roleChange|roleFact)
	}
	return (r.is(at+1, roleArticle) || r.tokens[at+1].plain == opaque) && !r.follows(at, roleFact|roleAuxiliary)
}

// fillerLimits judges a word like "just", which mostly limits nothing: it does in front of an instruction and between the verb of
// one and its object.
func (r reader) fillerLimits(at int) bool {
	if r.startsClause(at+1) || r.is(at+1, rolePast|roleFact) || r.hasPastEnding(at+1) && !r.is(at+1, roleChange|roleRead) {
		return false
	}
	first := at
	for r.before(first, roleAuxiliary) {
		first--
	}
	if r.opensClause(at) || r.before(first, roleAddress) {
		return !r.is(at+1, roleContent)
	}
	return r.is(at-1, roleChange) && r.verbCanStand(at-1) && !r.is(at+1, rolePreposition)
}

func (r reader) hasPastEnding(at int) bool {
	return slices.ContainsFunc(r.lexicon.context.pastEndings, func(ending string) bool { return strings.HasSuffix(r.tokens[at].ending(), ending) })
}
