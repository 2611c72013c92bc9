package kube

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"reflect"
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

// reading remembers the first field that could not be read, so that its users need to look once, at the end.
type reading struct {
	err   error
	roots []root
	// first is room for the roots of most requests.
	first [2]root
}

// root is where a reading began, under the name that errors call it by.
type root struct {
	name   string
	fields map[string]any
}

// fail notes what was expected of a value. Where its object stands is looked for only now: most requests can be read,
// and need no place kept for everything in them.
func (r *reading) fail(in map[string]any, place, want string) {
	if r.err != nil {
		return
	}
	for _, root := range slices.Backward(r.roots) {
		if path, ok := pathTo(root.fields, reflect.ValueOf(in).Pointer()); ok {
			r.err = &MalformedError{Path: root.name + path + place, Want: want}
			return
		}
	}
	r.err = &MalformedError{Path: strings.TrimPrefix(place, "."), Want: want}
}

// pathTo finds an object by its identity below a value, in the order of the keys.
func pathTo(value any, wanted uintptr) (string, bool) {
	switch v := value.(type) {
	case map[string]any:
		if reflect.ValueOf(v).Pointer() == wanted {
			return "", true
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path, ok := pathTo(v[key], wanted); ok {
				return "." + key + path, true
			}
		}
	case []any:
		for i, item := range v {
			if path, ok := pathTo(item, wanted); ok {
				return "[" + strconv.Itoa(i) + "]" + path, true
			}
		}
	}
	return "", false
}

// object is a JSON object. An absent object is one without fields, and null counts as absent, as it does for the API
// server.
type object struct {
	fields map[string]any
	r      *reading
}

func (r *reading) root(name string, fields map[string]any) object {
	if fields != nil {
		r.roots = append(r.roots, root{name, fields})
	}
	return object{fields: fields, r: r}
}

func (o object) fail(key, want string) { o.r.fail(o.fields, "."+key, want) }

func (o object) failAt(key string, index int, want string) {
	o.r.fail(o.fields, "."+key+"["+strconv.Itoa(index)+"]", want)
}

func (o object) object(key string) object {
	child := object{r: o.r}
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

// objects goes through a list of objects. What else is in the list fails first, however far a caller goes through it.
func (o object) objects(key string) iter.Seq[object] {
	return func(yield func(object) bool) {
		for _, item := range o.objectList(key) {
			if fields, ok := item.(map[string]any); ok && !yield(object{fields: fields, r: o.r}) {
				return
			}
		}
	}
}

// at is the object at a place of a list that objectList gave; absent beyond its end.
func (o object) at(list []any, i int) object {
	item := object{r: o.r}
	if i < len(list) {
		item.fields, _ = list[i].(map[string]any)
	}
	return item
}

// objectList is the list itself. What is no object in it fails.
func (o object) objectList(key string) []any {
	items := o.list(key)
	for i, item := range items {
		if _, ok := item.(map[string]any); !ok {
			o.failAt(key, i, "an object")
		}
	}
	return items
}

// count is how many objects there are.
func count(objects iter.Seq[object]) int {
	n := 0
	for range objects {
		n++
	}
	return n
}

// contains tells whether one of the objects is such a one.
func contains(objects iter.Seq[object], such func(object) bool) bool {
	for o := range objects {
		if such(o) {
			return true
		}
	}
	return false
}

func (o object) strings(key string) []string {
	items := o.list(key)
	if len(items) == 0 {
		return nil
	}
	texts := make([]string, 0, len(items))
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			o.failAt(key, i, "a string")
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
