package kube

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxNesting bounds how deep the content of an object is searched. Nothing that a controller reads lies deeper.
const maxNesting = 64

// place is a map inside an object, and what stood in its place before.
type place struct{ now, was map[string]any }

// findings are what an object of a kind without a pod template of its own holds that a controller could make something of.
// All lists have the order of the fields.
type findings struct {
	// r is apart from the request's reading: an object of somebody else's kind may have any form.
	r reading
	// pods are maps with a list of containers, with the metadata that stands beside them.
	pods []templateChange
	// containers are maps with an image that stand outside of pods.
	containers []place
	// parts are other maps with a field that a pod spec has.
	parts []place
	// copied are labels and annotations of what is made from the object.
	copied []place
	// manifests are whole objects.
	manifests []place
	// tooDeep tells that something lies deeper than maxNesting.
	tooDeep bool
}

type templateChange struct{ now, was template }

// search goes through the new object. Its own metadata is left out: it speaks for the object itself.
func search(now, was map[string]any) *findings {
	f := &findings{}
	whole := place{now, was}
	f.fields(whole, place{})
	f.below(whole, 1, "metadata")
	return f
}

// below searches the values of a map, but for one key.
func (f *findings) below(here place, depth int, except string) {
	if depth > maxNesting {
		f.tooDeep = f.tooDeep || len(here.now) > 0
		return
	}
	isPod := isPodSpec(here.now)
	for _, key := range slices.Sorted(maps.Keys(here.now)) {
		switch {
		case key == except:
		case isPod && slices.Contains(containerLists, key):
			f.belowContainers(here, key, depth)
		default:
			f.value(key, here.now[key], here.was[key], here, depth)
		}
	}
}

// belowContainers searches inside the containers of a pod spec, which are judged with it.
func (f *findings) belowContainers(pod place, list string, depth int) {
	before := children(pod.was, list)
	for i, container := range children(pod.now, list) {
		here := place{now: container}
		if i < len(before) {
			here.was = before[i]
		}
		f.below(here, depth+1, "")
	}
}

func (f *findings) value(key string, now, was any, parent place, depth int) {
	if depth > maxNesting {
		f.tooDeep = true
		return
	}
	switch now := now.(type) {
	case map[string]any:
		before, _ := was.(map[string]any)
		here := place{now, before}
		f.fields(here, parent)
		f.nested(key, here)
		f.below(here, depth+1, "")
	case []any:
		before, _ := was.([]any)
		for i, item := range now {
			var then any
			if i < len(before) {
				then = before[i]
			}
			f.value("", item, then, parent, depth+1)
		}
	}
}

// fields sorts one map into what it can be read as.
func (f *findings) fields(here, parent place) {
	switch {
	case isPodSpec(here.now):
		f.pods = append(f.pods, templateChange{now: f.template(here.now, parent.now), was: f.template(here.was, parent.was)})
	case isContainer(here.now):
		f.containers = append(f.containers, here)
	case has(here.now, partFields):
		f.parts = append(f.parts, here)
	}
}

// nested notes what only counts inside an object: labels for what is made from it, and whole other objects.
func (f *findings) nested(key string, here place) {
	lower := strings.ToLower(key)
	selects := strings.HasPrefix(lower, "match")
	if !selects && (strings.HasSuffix(lower, "labels") || strings.HasSuffix(lower, "annotations")) {
		f.copied = append(f.copied, here)
	}
	if isManifest(here.now) {
		f.manifests = append(f.manifests, here)
	}
}

func (f *findings) template(spec, beside map[string]any) template {
	metadata, _ := beside["metadata"].(map[string]any)
	return template{metadata: object{metadata, &f.r}, spec: object{spec, &f.r}}
}

// isPodSpec tells that a map holds a list of containers. Their names and images may be missing: some kinds fill them in.
func isPodSpec(fields map[string]any) bool {
	return slices.ContainsFunc(containerLists, func(list string) bool {
		items, _ := fields[list].([]any)
		return slices.ContainsFunc(items, func(item any) bool {
			_, ok := item.(map[string]any)
			return ok
		})
	})
}

var (
	// containerFields of a container say what it runs and how it is confined.
	containerFields = []string{"args", "command", "env", "envFrom", "securityContext", "volumeMounts"}
	// partFields of a pod spec are as good as unique to it.
	partFields = []string{
		"hostNetwork", "hostPID", "hostIPC", "securityContext", "serviceAccount", "serviceAccountName", "volumes",
	}
)

func isContainer(fields map[string]any) bool {
	image, _ := fields["image"].(string)
	return image != "" && has(fields, containerFields)
}

func has(fields map[string]any, any []string) bool {
	return slices.ContainsFunc(any, func(field string) bool { return fields[field] != nil })
}

// isManifest tells a whole object from a reference to one.
func isManifest(fields map[string]any) bool {
	version, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	_, named := fields["metadata"].(map[string]any)
	return version != "" && kind != "" && named
}

// changed tells that the map differs from what stood in its place.
func (c place) changed() bool { return !reflect.DeepEqual(c.now, c.was) }
