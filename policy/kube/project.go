package kube

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

func plainEqual(a, b any) bool { return reflect.DeepEqual(a, b) }

// projection removes from plain objects what the server writes by itself, so that the same wish has the same form at
// every try, and remembers what it removed.
type projection struct {
	kind        groupResource
	subresource string
	dropped     map[string]bool
}

func (p *projection) drop(fields map[string]any, path, key string) {
	if _, ok := fields[key]; ok {
		delete(fields, key)
		p.dropped[path+key] = true
	}
}

func (p *projection) names() []string { return slices.Sorted(maps.Keys(p.dropped)) }

func child(fields map[string]any, path ...string) map[string]any {
	for _, key := range path {
		fields, _ = fields[key].(map[string]any)
	}
	return fields
}

func children(fields map[string]any, key string) []map[string]any {
	items, _ := fields[key].([]any)
	objects := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// serverMetadata is set by the server, whatever the client sends.
var serverMetadata = []string{
	"managedFields", "resourceVersion", "generation", "uid", "selfLink", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds",
}

// each drops what means nothing on any object, new or old.
func (p *projection) each(object map[string]any) {
	metadata := child(object, "metadata")
	for _, key := range serverMetadata {
		p.drop(metadata, "metadata.", key)
	}
	if p.kind == daemonSets {
		p.drop(child(metadata, "annotations"), "metadata.annotations.", annotationTemplateGeneration)
	}
	p.annotations(metadata, "metadata.")
	path, ok := templatePath(p.kind)
	if !ok {
		return
	}
	template := child(object, path...)
	if len(path) > 0 {
		prefix := strings.Join(path, ".") + ".metadata."
		p.drop(child(template, "metadata"), prefix, "creationTimestamp")
		p.annotations(child(template, "metadata"), prefix)
	}
	p.accessVolumes(child(template, "spec"))
}

// annotations that bind nothing go, and with the last one the empty map.
func (p *projection) annotations(metadata map[string]any, prefix string) {
	annotations := child(metadata, "annotations")
	for _, key := range unboundAnnotations {
		p.drop(annotations, prefix+"annotations.", key)
	}
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// create projects a new object. What the server allocates is in it already when validating admission looks, and cannot
// be told from what the client chose.
func (p *projection) create(object map[string]any) {
	p.each(object)
	p.restart(nil, object)
	if builtIn(p.kind.group) && p.subresource == "" {
		p.drop(object, "", "status")
	}
	spec := child(object, "spec")
	if p.kind == deviceTaints {
		p.drop(child(spec, "taint"), "spec.taint.", "timeAdded") // the server's clock, where the client sets none
	}
	if p.kind != services {
		return
	}
	if spec["clusterIP"] != "None" {
		p.drop(spec, "spec.", "clusterIP")
		p.drop(spec, "spec.", "clusterIPs")
	}
	p.drop(spec, "spec.", "healthCheckNodePort")
	for _, port := range children(spec, "ports") {
		p.drop(port, "spec.ports[].", "nodePort")
	}
}

// update projects both sides of a change. Status, allocations and what controllers write are dropped only where the
// request does not change them: a caller who sets them on purpose is bound to it.
func (p *projection) update(old, new map[string]any) {
	p.each(old)
	p.each(new)
	p.restart(old, new)
	if p.subresource == "" {
		p.status(old, new)
	}
	p.unchangedAnnotations(old, new)
	was, now := child(old, "spec"), child(new, "spec")
	switch p.kind {
	case services:
		p.allocated(was, now, "spec.", "clusterIP")
		p.allocated(was, now, "spec.", "clusterIPs")
		p.allocated(was, now, "spec.", "healthCheckNodePort")
		p.nodePorts(was, now)
	case groupResource{"", "persistentvolumeclaims"}:
		p.unchanged(was, now, "spec.", "volumeName")
	case pods:
		p.unchanged(was, now, "spec.", "nodeName")
	}
}

// status of the main resource is the controllers' to change, and for most kinds the server ignores what a client says.
func (p *projection) status(old, new map[string]any) {
	p.unchanged(old, new, "", "status")
	if _, removed := old["status"]; removed {
		if _, set := new["status"]; !set && !p.dropped["status"] {
			new["status"] = nil
		}
		p.drop(old, "", "status")
	}
}

// unchanged drops a field that both sides hold alike.
func (p *projection) unchanged(old, new map[string]any, path, key string) {
	was, had := old[key]
	now, has := new[key]
	if had && has && plainEqual(was, now) {
		p.drop(old, path, key)
		p.drop(new, path, key)
	}
}

// allocated drops a field that did not change or that the server may have filled. None stands for headless, which is a
// choice.
func (p *projection) allocated(old, new map[string]any, path, key string) {
	p.unchanged(old, new, path, key)
	if now, has := new[key]; has && old[key] == nil && !headless(now) {
		p.drop(new, path, key)
	}
}

func headless(v any) bool {
	if list, ok := v.([]any); ok {
		return len(list) > 0 && list[0] == "None"
	}
	return v == "None"
}

// nodePorts drops, port by port, what is alike on both sides and what the server filled.
func (p *projection) nodePorts(old, new map[string]any) {
	type portKey struct{ port, protocol any }
	before := map[portKey]map[string]any{}
	for _, port := range children(old, "ports") {
		if hashable(port["port"]) && hashable(port["protocol"]) {
			before[portKey{port["port"], port["protocol"]}] = port
		}
	}
	for _, port := range children(new, "ports") {
		if hashable(port["port"]) && hashable(port["protocol"]) {
			p.allocated(before[portKey{port["port"], port["protocol"]}], port, "spec.ports[].", "nodePort")
		}
	}
}

func hashable(v any) bool { return v == nil || reflect.TypeOf(v).Comparable() }

// controllerAnnotations are written by controllers of Kubernetes after the object was made.
var controllerAnnotations = []string{
	"deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
	"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner",
	"volume.beta.kubernetes.io/storage-provisioner",
}

func (p *projection) unchangedAnnotations(old, new map[string]any) {
	was, now := child(old, "metadata"), child(new, "metadata")
	for _, key := range controllerAnnotations {
		p.unchanged(child(was, "annotations"), child(now, "annotations"), "metadata.annotations.", key)
	}
	p.annotations(was, "metadata.")
	p.annotations(now, "metadata.")
}

// restartValue stands for any time of a restart.
const restartValue = "$restart"

// restart drops the time of kubectl rollout restart, which differs at every try, and keeps that there is one.
func (p *projection) restart(old, new map[string]any) {
	path, ok := templatePath(p.kind)
	if !ok {
		return
	}
	was := child(child(child(old, path...), "metadata"), "annotations")
	now := child(child(child(new, path...), "metadata"), "annotations")
	before, after := was[annotationRestartedAt], now[annotationRestartedAt]
	prefix := strings.Join(append(slices.Clone(path), "metadata", "annotations", ""), ".")
	p.drop(was, prefix, annotationRestartedAt)
	p.drop(now, prefix, annotationRestartedAt)
	if after != nil && old != nil && !plainEqual(before, after) {
		now[annotationRestartedAt] = restartValue
	}
	p.annotations(child(child(old, path...), "metadata"), "")
	p.annotations(child(child(new, path...), "metadata"), "")
}

// accountMount is where the ServiceAccount admission plugin mounts the token.
const accountMount = "/var/run/secrets/kubernetes.io/serviceaccount"

// accessVolumes drops the token volume that the ServiceAccount admission plugin adds under a random name, and its
// mounts. A volume of that name with other content stays: it was somebody's choice.
func (p *projection) accessVolumes(spec map[string]any) {
	added := map[string]bool{}
	for _, volume := range children(spec, "volumes") {
		if name, _ := volume["name"].(string); strings.HasPrefix(name, "kube-api-access-") && isAccessVolume(volume) {
			added[name] = true
		}
	}
	if len(added) == 0 {
		return
	}
	isAdded := func(item any) bool {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		_, isMount := fields["mountPath"]
		return added[name] && (!isMount || fields["mountPath"] == accountMount && fields["readOnly"] == true && len(fields) == 3)
	}
	p.dropItems(spec, "volumes", isAdded)
	for _, list := range containerLists {
		for _, container := range children(spec, list) {
			p.dropItems(container, "volumeMounts", isAdded)
		}
	}
	p.dropped["volumes kube-api-access-*"] = true
}

func (p *projection) dropItems(fields map[string]any, key string, drop func(any) bool) {
	items, ok := fields[key].([]any)
	if !ok {
		return
	}
	if kept := slices.DeleteFunc(slices.Clone(items), drop); len(kept) > 0 {
		fields[key] = kept
		return
	}
	delete(fields, key)
}

// isAccessVolume: exactly the token for the API server's default audience, the cluster's CA and the namespace.
func isAccessVolume(volume map[string]any) bool {
	sources := children(child(volume, "projected"), "sources")
	if len(volume) != 2 || len(sources) != 3 {
		return false
	}
	token, ca, namespace := child(sources[0], "serviceAccountToken"), child(sources[1], "configMap"), child(sources[2], "downwardAPI")
	return token != nil && token["audience"] == nil && ca["name"] == "kube-root-ca.crt" && namespace != nil
}

// builtIn groups are served by Kubernetes, whose kinds keep status out of the main resource.
func builtIn(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy":
		return true
	default:
		return strings.HasSuffix(group, ".k8s.io")
	}
}
