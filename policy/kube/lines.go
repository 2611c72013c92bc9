package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxLines = 64
	maxLine  = 512
	// maxValue bounds one value, so that a line has room for the path, the old value and the new one.
	maxValue = 160
	// tellLength is from how many bytes on a value that is not shown has its length told.
	tellLength  = 64
	maxPathText = 150
	maxDepth    = 64
	noValue     = "(none)"
	arrow       = " -> "
)

// segment is one step of a path: a key, or the position in a list, spelled by name where all items have one of their
// own.
type segment struct {
	key  string
	item bool
}

// leaf is a value without parts, as it is shown.
type leaf struct {
	path []segment
	text string
}

func leavesOf(path []segment, v any, add func(leaf, any)) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 && len(path) < maxDepth {
			for key, value := range v {
				leavesOf(append(slices.Clip(path), segment{key: key}), value, add)
			}
			return
		}
	case []any:
		if len(v) > 0 && len(path) < maxDepth {
			names := itemNames(v)
			for i, value := range v {
				leavesOf(append(slices.Clip(path), segment{key: names[i], item: true}), value, add)
			}
			return
		}
	}
	add(leaf{path: path}, v)
}

// itemNames are the items' names where each has one that no other has, else their positions.
func itemNames(items []any) []string {
	names, seen := make([]string, len(items)), map[string]bool{}
	for i, item := range items {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		names[i] = name
		seen[name] = true
	}
	if seen[""] || len(seen) != len(items) {
		for i := range names {
			names[i] = strconv.Itoa(i)
		}
	}
	return names
}

// lines say what changes from old to new, or what new holds when old is nil. What stands near the top of the spec comes
// first, and metadata last, so that many deep values cannot push what matters out of sight.
func (f *former) lines(old, new map[string]any) []string {
	before, after := map[string]leaf{}, map[string]leaf{}
	f.gather(before, old)
	f.gather(after, new)
	changed := map[string]leaf{}
	for at, l := range after {
		was, had := before[at]
		switch {
		case old == nil:
			changed[at] = l
		case !had && !filled(old, l.path):
			changed[at] = leaf{path: l.path, text: noValue + arrow + l.text}
		case !had: // emptied: the lines of what it held say so
		case was.text != l.text:
			changed[at] = leaf{path: l.path, text: was.text + arrow + l.text}
		}
	}
	for at, l := range before {
		if _, has := after[at]; !has && !filled(new, l.path) {
			changed[at] = leaf{path: l.path, text: l.text + arrow + noValue}
		}
	}
	f.addReordered(changed, old, new)
	return f.bounded(changed)
}

// filled tells that the path leads to an object with fields.
func filled(tree map[string]any, path []segment) bool {
	for _, s := range path {
		if s.item {
			return false
		}
		tree, _ = tree[s.key].(map[string]any)
	}
	return len(tree) > 0
}

// addReordered says so where something differs and none of the lines so far shows it: the order of named items, or what
// lies too deep. With many lines already, nobody misses it.
func (f *former) addReordered(changed map[string]leaf, old, new map[string]any) {
	if old == nil || len(changed) >= maxLines {
		return
	}
	for _, c := range diff(old, new) {
		path := make([]segment, 0, len(c.segments))
		for _, key := range c.segments {
			path = append(path, segment{key: key})
		}
		at := f.spell(path)
		shown := false
		for other := range changed {
			shown = shown || other == at || strings.HasPrefix(other, at+".") || strings.HasPrefix(other, at+"[")
		}
		if !shown {
			changed[at] = leaf{path: path, text: "other order or detail"}
		}
	}
}

// targetFields stand in the summary already.
var targetFields = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}

func (f *former) gather(leaves map[string]leaf, object map[string]any) {
	if object == nil {
		return
	}
	leavesOf(nil, object, func(l leaf, v any) {
		at := f.spell(l.path)
		if at != "" && !slices.Contains(targetFields, at) {
			l.text = f.show(l.path, at, v)
			leaves[at] = l
		}
	})
}

// spell writes a path. Too long a path keeps both ends and a digest of the whole, so two never look alike.
func (f *former) spell(path []segment) string {
	var b strings.Builder
	for i, s := range path {
		text := f.key.showKey(s.key)
		switch {
		case s.item && text[0] == '.':
			text = "[" + text[1:] + "]"
		case i == 0:
			text = strings.TrimPrefix(text, ".")
		}
		b.WriteString(text)
	}
	text := b.String()
	if len(text) <= maxPathText {
		return text
	}
	const half = (maxPathText - 16) / 2
	return text[:half] + ".." + f.key.Short("path", text) + ".." + text[len(text)-half:]
}

func (f *former) show(path []segment, at string, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any:
		return emptyOr(len(v), "{}")
	case []any:
		return emptyOr(len(v), "[]")
	case string:
		return f.showText(path, at, v)
	default:
		return f.key.Short(f.place(at), fmt.Sprint(v))
	}
}

func emptyOr(n int, empty string) string {
	if n == 0 {
		return empty
	}
	return "(too deep)"
}

func (f *former) showText(path []segment, at, text string) string {
	if text == "$uid" || text == "$name" || text == restartValue {
		return text
	}
	keys := make([]string, 0, len(path))
	for _, s := range path {
		if !s.item {
			keys = append(keys, s.key)
		}
	}
	if n := len(path); n > 1 && path[n-1].key == "name" && path[n-2] == (segment{text, true}) && plainKey.MatchString(text) {
		return text // the path shows it already
	}
	if builtIn(f.req.Group) {
		if shown, ok := showString(keys, text); ok {
			return f.cut(at, shown, text)
		}
	}
	short := f.key.Short(f.place(at), text)
	if len(text) < tellLength || f.req.kind() == secrets {
		return short // the length of a Secret's value is nobody's business
	}
	return fmt.Sprintf("%s (%d bytes)", short, len(text))
}

// cut bounds a value that is shown. What is cut off is told by the length and a short digest of the whole, so that two values
// that differ never look alike.
func (f *former) cut(at, shown, text string) string {
	if len(shown) <= maxValue {
		return shown
	}
	rest := fmt.Sprintf(".. (%d bytes, %s)", len(text), f.key.Short(f.place(at), text))
	return shown[:maxValue-len(rest)] + rest
}

// place keeps equal values in different objects from looking equal.
func (f *former) place(at string) string {
	t := f.target
	return strings.Join([]string{t.Group, t.Resource, f.req.Subresource, t.Namespace, t.Name, at}, " ")
}

func (f *former) bounded(changed map[string]leaf) []string {
	spelled := make([]string, 0, len(changed))
	for at := range changed {
		spelled = append(spelled, at)
	}
	rank := func(at string) int {
		path := changed[at].path
		if path[0].key == "metadata" {
			return maxDepth + len(path)
		}
		return len(path)
	}
	slices.SortFunc(spelled, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	if len(spelled) == 0 {
		return []string{"nothing that a grant binds to"}
	}
	lines := make([]string, 0, min(len(spelled), maxLines))
	for i, at := range spelled {
		if len(lines) == maxLines-1 && len(spelled) > maxLines {
			return append(lines, fmt.Sprintf("and %d more", len(spelled)-i))
		}
		lines = append(lines, clip(at+": "+changed[at].text))
	}
	return lines
}

func clip(line string) string {
	if len(line) > maxLine {
		return line[:maxLine-2] + ".."
	}
	return line
}

// FirstDifference compares the lines of what was approved with the lines of what is asked. The values are the new ones,
// or the whole change where only the old ones differ; "(none)" where a side has no such line. ok is false when the
// lines are alike, which they can be although the digests differ: the epoch, the target's UID or what no line shows.
func FirstDifference(approved, asked []string) (path, approvedValue, askedValue string, ok bool) {
	before, after := lineValues(approved), lineValues(asked)
	for _, line := range asked {
		at, value, isValue := strings.Cut(line, ": ")
		was, had := before[at]
		switch {
		case !isValue || had && was == value:
		case !had:
			return at, noValue, newValue(value), true
		case newValue(was) == newValue(value):
			return at, was, value, true
		default:
			return at, newValue(was), newValue(value), true
		}
	}
	for _, line := range approved {
		at, value, isValue := strings.Cut(line, ": ")
		if _, has := after[at]; isValue && !has {
			return at, newValue(value), noValue, true
		}
	}
	return "", "", "", false
}

func lineValues(lines []string) map[string]string {
	values := make(map[string]string, len(lines))
	for _, line := range lines {
		if at, value, ok := strings.Cut(line, ": "); ok {
			values[at] = value
		}
	}
	return values
}

func newValue(value string) string {
	if _, after, changed := strings.Cut(value, arrow); changed {
		return after
	}
	return value
}
