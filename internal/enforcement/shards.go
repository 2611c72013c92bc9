package enforcement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// MaxShards bounds the shards of a scope. With maxShardBytes it keeps every object that holds a scope, and the webhook
	// configuration may hold two, below the 1.5 MiB that etcd takes in one request.
	MaxShards = 8
	// MaxEntries bounds the namespaces, users and exempt ServiceAccounts of a scope together, so that one FlowSchema can
	// list them. It is twice what requirement K-9 asks for.
	MaxEntries = 10_000
	// maxShardBytes bounds the expression of one shard, in UTF-8. The API server refuses expressions over 100,000 code
	// points; the rest is room for what is joined to the scope in one expression.
	maxShardBytes = 80_000
)

// shard is a part of a scope, small enough for one expression. Usernames have one order, that of their bytes, and the
// shards of a scope cut it into ranges: each shard judges the usernames of its range alone and lets every other one pass.
// So the expressions of all shards are true together for the governed identities and for nobody else, which is what a
// webhook entry and a ValidatingAdmissionPolicy do with their match conditions. A scope of any size then stays in one
// entry and one policy of each purpose: a change of scope is one write of one object, no identity can be in two shards or
// in none while it goes on, and no shard can be left behind.
type shard struct {
	// from is the first username of the range, before the first one behind it; empty for no bound.
	from, before string
	// Lists as the expression holds them, sorted; the canary's namespace is among the namespaces of one shard.
	users, namespaces, exempt []string
}

type shards []shard

// group is what must not be cut: a user, or a namespace with the exempt ServiceAccounts in it. key is the first username
// that it speaks of.
type group struct {
	key                       string
	users, namespaces, exempt []string
}

// Expressions are CEL expressions over request, each of at most 80,000 bytes: an identity is governed when all of them
// are true. There is one unless the scope is large. They never err, whoever asks and for whatever kind, and they look at
// the username, because an impersonator can drop groups. Equal scopes give equal bytes, whatever the order of their
// entries. Errors name the entry: ErrNeverGoverned, ErrNeverExempt or ErrMalformedEntry; ErrScopeTooLarge names the sizes.
func (s Scope) Expressions() ([]string, error) {
	parts, err := s.shards()
	if err != nil {
		return nil, err
	}
	expressions := make([]string, 0, len(parts))
	for _, part := range parts {
		expressions = append(expressions, part.expression(""))
	}
	return expressions, nil
}

func (s Scope) shards() (shards, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	parts := cut(s.withCanary().groups(), maxShardBytes)
	entries := 0
	for _, part := range parts {
		entries += len(part.users) + len(part.namespaces) + len(part.exempt)
	}
	fits := entries <= MaxEntries && len(parts) <= MaxShards &&
		!slices.ContainsFunc(parts, func(part shard) bool { return len(part.expression("")) > maxShardBytes })
	if !fits {
		return nil, fmt.Errorf("%w: %d namespaces, %d users and %d exempt ServiceAccounts need %d shards of %d bytes, at most %d entries in %d shards are possible",
			ErrScopeTooLarge, len(s.Namespaces), len(s.Users), len(s.Exempt), len(parts), maxShardBytes, MaxEntries, MaxShards)
	}
	return parts, nil
}

func (s Scope) withCanary() Scope {
	s.Namespaces = append(slices.Clone(s.Namespaces), CanaryNamespace)
	return s
}

// groups are sorted by key, without duplicates.
func (s Scope) groups() []group {
	byKey := map[string]group{}
	for _, user := range s.Users {
		byKey[user] = group{key: user, users: []string{user}}
	}
	for _, namespace := range s.Namespaces {
		key := firstServiceAccount(namespace)
		byKey[key] = group{key: key, namespaces: []string{namespace}}
	}
	for _, account := range s.Exempt {
		key, name := firstServiceAccount(account.Namespace), account.Username()
		if g := byKey[key]; !slices.Contains(g.exempt, name) {
			g.key, g.exempt = key, append(g.exempt, name)
			byKey[key] = g
		}
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b group) int { return cmp.Compare(a.key, b.key) })
}

// firstServiceAccount is what the usernames of a namespace's ServiceAccounts begin with, and sorts before all of them.
func firstServiceAccount(namespace string) string { return serviceAccountPrefix + namespace + ":" }

// cut fills one shard after the other. A group that is larger than the limit has a shard of its own.
func cut(groups []group, limit int) shards {
	var parts shards
	current, size := shard{}, 0
	for i, g := range groups {
		behind := ""
		if i+1 < len(groups) {
			behind = groups[i+1].key
		}
		if i > 0 && size+g.bytes()+len(celLiteral(behind)) > limit {
			current.before = g.key
			parts = append(parts, current.sorted())
			current, size = shard{from: g.key}, 0
		}
		if size == 0 {
			// What an upper bound needs beside its name; the name is counted above.
			size = len(shard{from: current.from, before: "x"}.expression(""))
		}
		current.users = append(current.users, g.users...)
		current.namespaces = append(current.namespaces, g.namespaces...)
		current.exempt = append(current.exempt, g.exempt...)
		size += g.bytes()
	}
	return append(parts, current.sorted())
}

// bytes of the group's entries in an expression.
func (g group) bytes() int {
	n := 0
	for _, entry := range slices.Concat(g.users, g.namespaces, g.exempt) {
		n += len(celLiteral(entry)) + len(",")
	}
	return n
}

func (p shard) sorted() shard {
	p.users, p.namespaces, p.exempt = sortedUnique(p.users), sortedUnique(p.namespaces), sortedUnique(p.exempt)
	return p
}

// covers tells whether the username is in the shard's range.
func (p shard) covers(username string) bool {
	return username >= p.from && (p.before == "" || username < p.before)
}

// The fixed parts of a shard's expression; strings and lists of the shard stand between them. JSON strings are CEL strings.
const (
	caller = "request.userInfo.username"

	known      = "has(" + caller + ") && ("
	below      = caller + " < "
	atLeast    = caller + " >= "
	or         = " || "
	inUsers    = caller + " in "
	inAccounts = or + caller + `.startsWith("` + serviceAccountPrefix + `") && ` + caller + `.split(":")[2] in `
	notExempt  = " && !(" + caller + " in "
	bearing    = ` && has(request.userInfo.extra) && "` + credentialID + `" in request.userInfo.extra)`
)

// expression is true for identities outside the range, and for the governed ones within it. Where further is not empty, it
// has to be true too for the governed ones, and nobody else pays for it. A caller without a username is not governed.
func (p shard) expression(further string) string {
	var b strings.Builder
	b.WriteString(known)
	if p.from != "" {
		b.WriteString(below + celLiteral(p.from) + or)
	}
	if p.before != "" {
		b.WriteString(atLeast + celLiteral(p.before) + or)
	}
	lists := inUsers + celLiteral(p.users) + inAccounts + celLiteral(p.namespaces) + notExempt + celLiteral(p.exempt) + bearing
	if further != "" {
		lists = "(" + lists + ") && (" + further + ")"
	}
	b.WriteString(lists + ")")
	return b.String()
}
