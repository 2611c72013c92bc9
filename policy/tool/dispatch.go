package tool

import (
	"encoding/json"
	"slices"
)

// calling are verbs of tools that call another tool, which their arguments name.
var calling = setOf("call invoke run execute exec use dispatch")

// dispatched is the call that a dispatcher would make ("call_tool" with a tool's name and its arguments), and the call
// itself when it is none or does not tell plainly. Only the words of the inner call say what happens. A dispatcher that
// calls a dispatcher is not followed.
func dispatched(call Call) Call {
	name := words(ownName(call.Name))
	if len(name) < 2 || !calling[name[0]] || name[len(name)-1] != "tool" {
		return call
	}
	inner := Call{}
	for key, value := range call.Arguments {
		key := words(key)
		switch {
		case len(key) > 0 && key[len(key)-1] == "name" && (len(key) == 1 || slices.Contains(key, "tool")):
			text, ok := value.(string)
			if !ok || text == "" || inner.Name != "" {
				return call
			}
			inner.Name = text
		case len(key) == 1 && (key[0] == "arguments" || key[0] == "args" || key[0] == "input" || key[0] == "parameters"):
			arguments, ok := argumentsOf(value)
			if !ok || inner.Arguments != nil {
				return call
			}
			inner.Arguments = arguments
		default:
			return call
		}
	}
	if inner.Name == "" {
		return call
	}
	return inner
}

// argumentsOf reads arguments that may be JSON in a text.
func argumentsOf(value any) (map[string]any, bool) {
	switch v := value.(type) {
	case nil:
		return map[string]any{}, true
	case map[string]any:
		return v, true
	case string:
		arguments := map[string]any{}
		return arguments, v == "" || json.Unmarshal([]byte(v), &arguments) == nil
	default:
		return nil, false
	}
}
