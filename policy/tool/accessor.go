package tool

import (
	"slices"
	"strings"
)

// Words that descriptions of accessors ("Get or update the scale ... If the scale is set, it will be updated") use.
var (
	replacing = setOf("set update change modify")
	replaced  = setOf("set updated changed modified")
	given     = setOf("set given provided specified passed present supplied")
)

// readsUnlessSet tells that the call reads what its tool could also set: the description begins with both verbs, says of
// at least one argument that something is changed when it is given, and this call gives none of those. The name may have
// a verb of changing only where it is such an argument, and then a noun. A call without arguments may be one of which
// nobody knows them.
func (r *reading) readsUnlessSet(call Call) bool {
	settable := settableOf(call.Description)
	if len(call.Arguments) == 0 || len(settable) == 0 || len(r.name) > maxWords || r.command || r.writing || r.losingStatement {
		return false
	}
	for _, word := range r.name {
		if (changing.has(word) || either.has(word)) && !slices.Contains(settable, word) {
			return false
		}
	}
	for name, value := range call.Arguments {
		switch value.(type) {
		case map[string]any, []any:
			return false
		}
		if slices.ContainsFunc(words(name), func(word string) bool { return slices.Contains(settable, word) }) {
			return false
		}
	}
	return true
}

// settableOf are the arguments that make an accessor change something; none when the description is not of an accessor.
// A word of changing outside these conditions makes it none.
func settableOf(description string) []string {
	first, rest, found := strings.Cut(description, ". ")
	opening := words(first)
	accessor := found && len(opening) > 2 && looking.has(opening[0]) && opening[1] == "or" && replacing.has(opening[2])
	if !accessor || contradicts(opening) {
		return nil
	}
	var settable, others []string
	for _, sentence := range strings.FieldsFunc(rest, func(r rune) bool { return r == '.' || r == '\n' }) {
		told := words(sentence)
		if argument := condition(told); argument != "" {
			settable = append(settable, argument)
		} else {
			others = append(others, told...)
		}
	}
	for _, word := range others {
		if (changing.has(word) || replaced[word]) && !slices.Contains(settable, word) {
			return nil
		}
	}
	return settable
}

// condition gives the argument of "if the ARGUMENT is given, ... will be updated"; empty for every other sentence.
func condition(told []string) string {
	if len(told) > 1 && told[1] == "the" {
		told = slices.Concat(told[:1], told[2:])
	}
	if len(told) < 5 || told[0] != "if" || told[2] != "is" || !given[told[3]] ||
		!slices.ContainsFunc(told[4:], func(word string) bool { return replaced[word] }) {
		return ""
	}
	return told[1]
}
