package kube

import (
	"fmt"
	"strconv"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// deletionLines say how the object is deleted and what it is. Options that are not given are the kind's defaults.
func (f *former) deletionLines(options object) []string {
	var given []string
	if propagation := options.text("propagationPolicy"); enumWord.MatchString(propagation) {
		given = append(given, "propagationPolicy="+propagation)
	}
	if options.flag("orphanDependents") {
		given = append(given, "orphanDependents=true")
	}
	if grace, set := options.number("gracePeriodSeconds"); set && grace == 0 {
		given = append(given, "gracePeriodSeconds=0")
	}
	if options.object("preconditions").fields != nil {
		given = append(given, "with preconditions")
	}
	if len(given) == 0 {
		given = []string{"defaults"}
	}
	lines := []string{"options: " + strings.Join(given, ", ")}
	if what := f.describe(); what != "" {
		lines = append(lines, clip("object: "+what))
	}
	return lines
}

// describe sizes the object that is deleted. What cannot be read is left out: this is for people and binds nothing.
func (f *former) describe() string {
	var r reading
	o := r.root("oldObject", f.req.OldObject)
	if o.fields == nil {
		return ""
	}
	parts := f.describeKind(o, o.object("spec"))
	if created := metadataText(o.fields, "creationTimestamp"); len(created) >= len("2006-01-02") {
		day := "created " + asciiOnly(created[:len("2006-01-02")], 16)
		if identifier.MatchString(f.target.LastWriter) {
			day += ", last written by " + f.target.LastWriter
		}
		parts = append(parts, day)
	}
	if n := len(o.object("metadata").strings("finalizers")); n > 0 {
		parts = append(parts, fmt.Sprintf("%d finalizers", n))
	}
	return strings.Join(parts, ", ")
}

func (f *former) describeKind(o, spec object) []string {
	name := func(label, value string) []string {
		if !identifier.MatchString(value) {
			return nil
		}
		return []string{label + " " + value}
	}
	var parts []string
	switch kind := f.req.kind(); {
	case kind == groupResource{"", "persistentvolumeclaims"}:
		if size := spec.object("resources").object("requests").text("storage"); quantity.MatchString(size) {
			parts = append(parts, size)
		}
		parts = append(parts, name("storageClass", spec.text("storageClassName"))...)
		return append(parts, name("bound to", spec.text("volumeName"))...)
	case kind == secrets, kind == groupResource{"", "configmaps"}:
		return []string{fmt.Sprintf("%d keys", len(o.object("data").fields)+len(o.object("binaryData").fields))}
	case kind == services:
		if kind := spec.text("type"); enumWord.MatchString(kind) {
			return []string{"type " + kind}
		}
	case kind == namespaces:
		return []string{"a namespace with everything in it"}
	case kind == pods:
		parts = append(parts, fmt.Sprintf("%d containers", len(spec.list("containers"))))
		if phase := o.object("status").text("phase"); enumWord.MatchString(phase) {
			parts = append(parts, phase)
		}
	case scalable[kind]:
		parts = append(parts, fmt.Sprintf("%d replicas", replicas(o, false)))
		if n := len(spec.list("volumeClaimTemplates")); n > 0 {
			parts = append(parts, fmt.Sprintf("%d claim templates", n))
		}
		if retention(o, "whenDeleted") == "Delete" {
			parts = append(parts, "deletes its claims")
		}
	}
	return parts
}

// connectionLines show the command, which is what a person approves; it is the one text that is shown in clear.
func (f *former) connectionLines(options map[string]any) []string {
	var r reading
	o := r.root("object", options)
	var lines []string
	if command := o.strings("command"); len(command) > 0 {
		words := make([]string, 0, len(command))
		for _, word := range command {
			words = append(words, commandWord(word))
		}
		line := "command: " + strings.Join(words, " ")
		if len(line) > maxLine {
			rest := fmt.Sprintf(".. (%d words, %s)", len(command), f.key.Short(f.place("command"), line))
			line = line[:maxLine-len(rest)] + rest
		}
		lines = append(lines, line)
	}
	if container := o.text("container"); identifier.MatchString(container) {
		lines = append(lines, "container: "+container)
	}
	for _, field := range []string{"stdin", "tty"} {
		if o.flag(field) {
			lines = append(lines, field+": true")
		}
	}
	var ports []string
	for _, port := range o.list("ports") {
		if n, ok := integer(port); ok && len(ports) < 16 {
			ports = append(ports, strconv.FormatInt(n, 10))
		}
	}
	if len(ports) > 0 {
		lines = append(lines, "ports: "+strings.Join(ports, ", "))
	}
	if path := o.text("path"); path != "" {
		lines = append(lines, "path: "+f.key.Short(f.place("path"), path))
	}
	return lines
}

// shortNames are kubectl's for the kinds that people meet most.
var shortNames = map[groupResource]string{
	pods: "pod", services: "svc", secrets: "secret", namespaces: "ns", jobs: "job", statefulSets: "sts",
	{"", "persistentvolumeclaims"}: "pvc", {"", "persistentvolumes"}: "pv", {"", "configmaps"}: "cm",
	{"", "serviceaccounts"}: "sa", {"", "nodes"}: "node", {"", "replicationcontrollers"}: "rc",
	{"", "resourcequotas"}: "quota", {"", "limitranges"}: "limits", {"", "endpoints"}: "ep", {"", "events"}: "ev",
	{"apps", "deployments"}: "deploy", {"apps", "daemonsets"}: "ds", {"apps", "replicasets"}: "rs",
	{"batch", "cronjobs"}: "cj", {"networking.k8s.io", "ingresses"}: "ing",
	{"networking.k8s.io", "networkpolicies"}: "netpol", {"autoscaling", "horizontalpodautoscalers"}: "hpa",
	{"policy", "poddisruptionbudgets"}: "pdb", {"storage.k8s.io", "storageclasses"}: "sc",
}

const maxName = 140

// Summary is the operation as messages spell it: "delete persistentvolumeclaims checkout/data-postgres-0".
func Summary(verb policy.Verb, target policy.Target) string {
	return fmt.Sprintf("%s %s %s", verb, asciiOnly(target.ResourcePath(), maxName), asciiOnly(target.Path(), maxName))
}

// DisplayTarget is the operation as columns show it: "delete pvc/data-postgres-0", "exec pod/web-0",
// "update deploy/web (scale)".
func DisplayTarget(verb policy.Verb, target policy.Target) string {
	resource, ok := shortNames[groupResource{target.Group, target.Resource}]
	if !ok {
		resource = target.Resource
	}
	name := target.Name
	if name == "" {
		name = "(unnamed)"
	}
	object := asciiOnly(resource, maxName) + "/" + asciiOnly(name, maxName)
	switch {
	case target.Subresource == "":
		return string(verb) + " " + object
	case verb == policy.VerbConnect:
		return asciiOnly(target.Subresource, maxName) + " " + object
	default:
		return string(verb) + " " + object + " (" + asciiOnly(target.Subresource, maxName) + ")"
	}
}
