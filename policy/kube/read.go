package kube

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MalformedError names the field that cannot be read as its kind says. Its text holds no value from the request.
type MalformedError struct {
	// Path is the field, from "object", "oldObject", "options" or the name of a field of [Request].
	Path string
	// Want completes "must be".
	Want string
}

func (e *MalformedError) Error() string { return e.Path + ": must be " + e.Want }

// place is where a value stands. It is spelled only when an error needs it.
type place struct {
	parent *place
	key    string
	index  int
}

func (p *place) String() string {
	var parts []string
	for ; p != nil; p = p.parent {
		if p.key == "" {
			parts = append(parts, "["+strconv.Itoa(p.index)+"]")
			continue
		}
		dot := ""
		if p.parent != nil {
			dot = "."
		}
		parts = append(parts, dot+p.key)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// reading remembers the first field that could not be read, so that its users need to look once, at the end.
type reading struct{ err error }

func (r *reading) fail(at *place, want string) {
	if r.err == nil {
		r.err = &MalformedError{Path: at.String(), Want: want}
	}
}

// object is a JSON object and its place. An absent object is one without fields, and null counts as absent, as it does
// for the API server.
type object struct {
	fields map[string]any
	at     *place
	r      *reading
}

func (r *reading) root(name string, fields map[string]any) object {
	return object{fields: fields, at: &place{key: name}, r: r}
}

func (o object) fail(key, want string) { o.r.fail(&place{parent: o.at, key: key}, want) }

func (o object) object(key string) object {
	child := object{at: &place{parent: o.at, key: key}, r: o.r}
	switch v := o.fields[key].(type) {
	case nil:
	case map[string]any:
		child.fields = v
	default:
		o.fail(key, "an object")
	}
	return child
}

func (o object) list(key string) []any {
	switch v := o.fields[key].(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		o.fail(key, "a list")
		return nil
	}
}

func (o object) objects(key string) []object {
	items := o.list(key)
	if len(items) == 0 {
		return nil
	}
	at := &place{parent: o.at, key: key}
	objects := make([]object, 0, len(items))
	for i, item := range items {
		here := &place{parent: at, index: i}
		fields, ok := item.(map[string]any)
		if !ok {
			o.r.fail(here, "an object")
			continue
		}
		objects = append(objects, object{fields: fields, at: here, r: o.r})
	}
	return objects
}

func (o object) strings(key string) []string {
	items := o.list(key)
	texts := make([]string, 0, len(items))
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			o.r.fail(&place{parent: &place{parent: o.at, key: key}, index: i}, "a string")
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

func (o object) text(key string) string {
	switch v := o.fields[key].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		o.fail(key, "a string")
		return ""
	}
}

func (o object) flag(key string) bool {
	switch v := o.fields[key].(type) {
	case nil:
		return false
	case bool:
		return v
	default:
		o.fail(key, "a boolean")
		return false
	}
}

// number reads an integer; ok is false when the field is absent.
func (o object) number(key string) (n int64, ok bool) {
	v := o.fields[key]
	if v == nil {
		return 0, false
	}
	if n, ok = integer(v); !ok {
		o.fail(key, "an integer")
	}
	return n, ok
}

// integer reads every form in which decoders deliver whole numbers.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		if n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			return 0, false
		}
		return int64(n), true
	case json.Number:
		whole, err := strconv.ParseInt(n.String(), 10, 64)
		return whole, err == nil
	default:
		return 0, false
	}
}
