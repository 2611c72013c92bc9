package enforcement

import (
	"cmp"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// Reads are selectors of rules about reads, by whose reads they are about.
type Reads struct {
	// Everybody who is governed: of cluster policies and profiles.
	Everybody []policy.KubernetesSelector
	// Namespaces are the selectors of namespaces' own policies, each namespace once.
	Namespaces []NamespaceReads
}

// NamespaceReads are the selectors of a namespace's own policy. They count for its ServiceAccounts and for Users, the
// governed users whose sessions are in it.
type NamespaceReads struct {
	Namespace string
	Users     []string
	Selectors []policy.KubernetesSelector
}

// maxUnseenBytes bounds the condition about what is asked, as maxShardBytes does: an API server refuses the whole file
// over one expression of more than 100,000 code points.
const maxUnseenBytes = maxShardBytes

const everyRead = `r.verb in ["get","list","watch"]`

// boundedSelections joins the selections of what is always asked with those of reads in at most limit bytes. Where they
// do not fit, the longest of the namespaces' own conditions become "every read of the namespace's callers", one after the
// other, so that a namespace pays for its own policy before others do. Where that does not fit either, every read of
// everybody who is governed is asked about. No rule is ever dropped.
func boundedSelections(always []policy.KubernetesSelector, reads Reads, limit int) string {
	expressions := selections(append(slices.Clone(always), reads.Everybody...))
	own := make([]ownReads, 0, len(reads.Namespaces))
	size := len(strings.Join(expressions, or))
	for _, n := range reads.Namespaces {
		o := ownReads{NamespaceReads: n, expression: "(" + n.callers() + ") && (" + strings.Join(selections(n.Selectors), or) + ")"}
		size += len(or) + len(o.expression)
		own = append(own, o)
	}
	slices.SortFunc(own, func(a, b ownReads) int {
		return cmp.Or(cmp.Compare(len(b.expression), len(a.expression)), cmp.Compare(a.Namespace, b.Namespace))
	})
	for i := range own {
		if size <= limit {
			break
		}
		if every := "(" + own[i].callers() + ") && " + everyRead; len(every) < len(own[i].expression) {
			size -= len(own[i].expression) - len(every)
			own[i].expression = every
		}
	}
	if size > limit {
		return strings.Join(append(selections(always), everyRead), or)
	}
	slices.SortFunc(own, func(a, b ownReads) int { return cmp.Compare(a.Namespace, b.Namespace) })
	for _, o := range own {
		expressions = append(expressions, o.expression)
	}
	return strings.Join(expressions, or)
}

type ownReads struct {
	NamespaceReads
	expression string
}

func (n NamespaceReads) callers() string {
	callers := "request.user.startsWith(" + celLiteral(firstServiceAccount(n.Namespace)) + ")"
	if len(n.Users) > 0 {
		callers += or + "request.user in " + celLiteral(sortedUnique(n.Users))
	}
	return callers
}
