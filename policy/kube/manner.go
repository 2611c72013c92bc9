package kube

import (
	"maps"

	"stepbeyond.dev/stepbeyond/policy"
)

const (
	maxCommandWords = 64
	maxCommandWord  = 240
)

// mannerOf splits what an operation does, as its form has it, into its command and how else it is carried out. What an
// object is made or changed to is no manner: that is what a wider answer leaves open, within the reasons that it showed.
func mannerOf(verb policy.Verb, req *Request, changed any) (command []string, manner []byte, err error) {
	form, _ := changed.(map[string]any)
	form = maps.Clone(form)
	switch {
	case verb == policy.VerbDelete:
		// Preconditions only narrow a deletion, and differ from object to object.
		delete(form, "uid")
		delete(form, "resourceVersion")
	case verb == policy.VerbCreate && req.Subresource != "":
		delete(form, "metadata") // the target says it
	case verb == policy.VerbConnect:
		if words, ok := wordsOf(form["command"]); ok {
			command = words
			delete(form, "command")
		}
	default:
		return nil, nil, nil
	}
	manner, err = canonicalJSON(form)
	return command, manner, err
}

// wordsOf gives a command that can be told by its words with one space between each.
func wordsOf(command any) (words []string, ok bool) {
	list, _ := command.([]any)
	if len(list) == 0 || len(list) > maxCommandWords {
		return nil, false
	}
	for _, item := range list {
		word, _ := item.(string)
		if word == "" || len(word) > maxCommandWord {
			return nil, false
		}
		for i := range len(word) {
			if word[i] <= ' ' || word[i] > '~' {
				return nil, false
			}
		}
		words = append(words, word)
	}
	return words, true
}
