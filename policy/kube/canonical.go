package kube

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// maxExactInteger is the largest integer that RFC 8785 numbers, which are IEEE doubles, hold exactly.
const maxExactInteger = 1 << 53

// canonicalJSON is the RFC 8785 form of a tree that plainCopy made.
func canonicalJSON(tree any) ([]byte, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	canonical, err := jcs.Transform(text)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return canonical, nil
}

// plainCopy copies decoded JSON so that projection can change it. Numbers get one form whatever decoded them, with
// large integers kept to the last digit; strings that are keys of names become what they map to.
func plainCopy(v any, names map[string]string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		fields := make(map[string]any, len(v))
		for key, value := range v {
			plain, err := plainCopy(value, names)
			if err != nil {
				return nil, err
			}
			fields[key] = plain
		}
		return fields, nil
	case []any:
		items := make([]any, 0, len(v))
		for _, value := range v {
			plain, err := plainCopy(value, names)
			if err != nil {
				return nil, err
			}
			items = append(items, plain)
		}
		return items, nil
	case string:
		if placeholder, ok := names[v]; ok {
			return placeholder, nil
		}
		return v, nil
	case nil, bool:
		return v, nil
	default:
		return plainNumber(v)
	}
}

func plainNumber(v any) (any, error) {
	if n, ok := integer(v); ok {
		if n > maxExactInteger || n < -maxExactInteger {
			return map[string]any{"$integer": strconv.FormatInt(n, 10)}, nil
		}
		return n, nil
	}
	switch n := v.(type) {
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, fmt.Errorf("canonical form: a number that JSON cannot hold")
		}
		return n, nil
	case json.Number:
		f, err := n.Float64()
		if err != nil || f == math.Trunc(f) && math.Abs(f) > maxExactInteger {
			return map[string]any{"$number": n.String()}, nil
		}
		if whole, ok := integer(f); ok {
			return whole, nil
		}
		return f, nil
	default:
		return nil, fmt.Errorf("canonical form: a value of type %T is not decoded JSON", v)
	}
}

// change is one differing value. Lists are atomic: a merge of lists has no meaning without their kind's schema.
type change struct {
	segments    []string
	old, new    any
	added, gone bool
}

// pointer is the RFC 6901 spelling of the path, which keys with dots leave unambiguous.
func (c *change) pointer() string {
	var b strings.Builder
	for _, segment := range c.segments {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(segment))
	}
	return b.String()
}

// form of the change in the canonical form. An absent side is left out, so that it differs from null.
func (c *change) form() map[string]any {
	form := map[string]any{"path": c.pointer()}
	if !c.added {
		form["old"] = c.old
	}
	if !c.gone {
		form["new"] = c.new
	}
	return form
}

// diff lists what differs between two plain trees, sorted by path.
func diff(old, new map[string]any) []change {
	var changes []change
	addChanges(&changes, nil, old, new)
	slices.SortFunc(changes, func(a, b change) int { return slices.Compare(a.segments, b.segments) })
	return changes
}

func addChanges(changes *[]change, at []string, old, new map[string]any) {
	for key, was := range old {
		here := append(slices.Clip(at), key)
		now, kept := new[key]
		wasMap, ok := was.(map[string]any)
		nowMap, also := now.(map[string]any)
		switch {
		case !kept:
			*changes = append(*changes, change{segments: here, old: was, gone: true})
		case ok && also:
			addChanges(changes, here, wasMap, nowMap)
		case !plainEqual(was, now):
			*changes = append(*changes, change{segments: here, old: was, new: now})
		}
	}
	for key, now := range new {
		if _, had := old[key]; !had {
			*changes = append(*changes, change{segments: append(slices.Clip(at), key), new: now, added: true})
		}
	}
}
