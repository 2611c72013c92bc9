package tool

import (
	"slices"
	"strings"
)

// reading is what the words and the shapes of a call tell.
type reading struct {
	name, description []string

	// amount of money, recipient, address outside, an address that carries data.
	amount, recipient, address, addressWithData bool
	// secretField is an argument that holds a secret by its name, secretValue one that looks like a secret, secretTarget
	// one that names where secrets are.
	secretField, secretValue, secretTarget bool
	// everything stands as an argument ("*").
	everything bool
	// command is an argument that is run somewhere, writing one that asks for a change, losingStatement one that loses data.
	command, writing, losingStatement bool
}

// has looks at the name and at the verb that the description begins with.
func (r *reading) has(s set) bool {
	for _, word := range r.name {
		if s.has(word) {
			return true
		}
	}
	return len(r.description) > 0 && s.has(leading(r.description)[0])
}

// reads tells whether the call is a pure read.
func (r *reading) reads() bool {
	return len(r.name) <= maxWords && nameReads(r.name, r.description) && !contradicts(r.description) && !r.command && !r.writing && !r.losingStatement
}

// nameReads knows two habits of naming: the verb first ("list_pods") and the verb behind what it reads ("pods_list",
// "issue_read") or behind a product ("acmeReadMail"). What stands in front may be a verb that no lexicon has
// ("expunge_list"), so the description must begin with a verb of reading then; without one, only verbs that are no nouns
// count, and what is read of a plural ("pods_list", "pods_log").
func nameReads(name, description []string) bool {
	if len(name) == 0 {
		return false
	}
	if slices.ContainsFunc(name, func(word string) bool { return changing[word] }) || joined(name) {
		return false
	}
	last := len(name) - 1
	if lookingFirst.has(name[0]) {
		// "check in" and "check out" are bookings.
		return last == 0 || name[1] != "in" && name[1] != "out"
	}
	for i, word := range name {
		switch {
		case looking[word] && i == 0:
			return true
		case looking[word] && len(description) > 0:
			return toldToRead(description)
		case looking[word]:
			return lookingOnly[word] || word == "list" && plural(name[i-1])
		case i == last && i > 0 && lookedAt[word]: // "pods_log"
		case either[word]:
			// "issue_read", "pull_request_read": a noun that could be a verb needs a verb at the end that is no noun.
			return i == 0 && lookingLast[name[last]] && (len(description) == 0 || toldToRead(description))
		}
	}
	return lookedAt.has(name[last]) && (toldToRead(description) || len(description) == 0 && plural(name[0]))
}

// plural tells a noun from a verb, which names have in its base form.
func plural(word string) bool { return strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") }

// toldToRead tells that a description begins with a verb of reading.
func toldToRead(description []string) bool {
	if len(description) == 0 {
		return false
	}
	first := leading(description)[0]
	return looking.has(first) || lookingFirst.has(first) || giving.has(first)
}

// joined tells that a second verb is joined to the first ("get_and_order", "find_or_book").
func joined(name []string) bool {
	for i, word := range name[:len(name)-1] {
		if word == "and" || word == "or" || word == "then" {
			if next := name[i+1]; changing.has(next) || either.has(next) {
				return true
			}
		}
	}
	return false
}

// leading skips how descriptions begin before their verb.
func leading(description []string) []string {
	opening := setOf("this tool use to the a an function command action endpoint api method helper allows allow lets let you user users used is can will for simply safely")
	for len(description) > 1 && opening[description[0]] {
		description = description[1:]
	}
	return description
}

// contradicts tells that a description speaks of a change: its verb is one, or one is joined to it. In a sentence that
// says what does not happen, only the verb counts.
func contradicts(description []string) bool {
	if len(description) == 0 {
		return false
	}
	if first := leading(description)[0]; changing.has(first) || either.has(first) {
		return true
	}
	for i, word := range description {
		switch word {
		case "not", "without", "never", "no", "cannot", "doesn":
			return false
		case "and", "then", "also":
			if i+1 < len(description) && verbAt(description[i+1:]) {
				return true
			}
		}
	}
	return false
}

// verbAt tells whether the text goes on with a verb of changing. A word in -s is a noun at the end and before a
// preposition: "assignments, and updates on issues".
func verbAt(text []string) bool {
	if changing[text[0]] {
		return true
	}
	return changing.has(text[0]) && len(text) > 1 && !prepositions[text[1]]
}

// namesSecrets tells that name or description are about secrets.
func (r *reading) namesSecrets() bool {
	return namesSecret(r.name) || namesSecret(withoutSource(r.description))
}

// withoutSource leaves a kubeconfig out where it is only the file in which labels stand ("list context names and server
// urls from the kubeconfig"): of those no one logs in.
func withoutSource(description []string) []string {
	from := slices.Index(description, "from")
	source := slices.Index(description, "kubeconfig")
	if from < 1 || source < from || source > from+2 || !labels.has(description[from-1]) ||
		anyOf(description[:from], holding) {
		return description
	}
	return slices.Concat(description[:from], description[source+1:])
}

func namesSecret(found []string) bool {
	for i, word := range found {
		switch {
		case secrets.has(word):
			return true
		case word == "token" || word == "tokens":
			if (i == 0 || !pages.has(found[i-1])) && (i+1 == len(found) || !pages.has(found[i+1])) {
				return true
			}
		case i > 0 && (word == "key" || word == "keys") && keys.has(found[i-1]):
			return true
		}
	}
	return false
}
