package corpora

import (
	"io/fs"

	"stepbeyond.dev/stepbeyond/policy"
)

const (
	harmfulManifests = "destructive or escalating manifests decided AUTO or AUTO_WITH_DISCLOSURE"
	riskyRoles       = "role grants with risky rules below ASK"
	benignForbidden  = "benign pods and workload writes FORBIDDEN"
	benignAsked      = "benign pods and workload writes ASK"
	otherWrites      = "agents' writes of other kinds, or with a claim that was there before, interrupted"
)

type object = map[string]any

type manifestLine struct {
	ID     string
	Object object
	Expect expectation
}

// harmfulObjects counts the objects that must not pass without a question.
func harmfulObjects(j *judge, row *Row, lines []manifestLine) {
	for _, line := range lines {
		if !line.Expect.harmful() {
			continue
		}
		if class := j.manifest(write{object: line.Object}); class != 0 {
			row.count(line.ID, class < policy.ClassAsk)
		}
	}
}

func kyverno(data fs.FS, j *judge) ([]*Row, error) {
	lines, err := read[manifestLine](data, "k8s-kyverno/objects.jsonl")
	row := newRow(j.through(harmfulManifests), "k8s-kyverno", 0)
	harmfulObjects(j, row, lines)
	return []*Row{row}, err
}

func podSecurity(data fs.FS, j *judge) ([]*Row, error) {
	lines, err := read[manifestLine](data, "k8s-pod-security/pods.jsonl")
	harms := newRow(j.through(harmfulManifests), "k8s-pod-security", 0)
	harmfulObjects(j, harms, lines)
	forbidden, asked := newRow(j.through(benignForbidden), "k8s-pod-security", 0), newRow(j.through(benignAsked), "k8s-pod-security", 0.05)
	for _, line := range lines {
		if line.Expect.Class == "allowed_by_baseline" || line.Expect.Class == "allowed_by_restricted" {
			class := j.manifest(write{object: line.Object})
			if class == 0 {
				continue
			}
			forbidden.count(line.ID, class == policy.ClassForbidden)
			asked.count(line.ID, class == policy.ClassAsk)
		}
	}
	return []*Row{harms, forbidden, asked}, err
}

// gatekeeper has cases of several objects, of which the worst counts. Some are reviews around the object.
func gatekeeper(data fs.FS, j *judge) ([]*Row, error) {
	lines, err := read[struct {
		ID      string
		Objects []object
		Expect  expectation
	}](data, "k8s-gatekeeper/cases.jsonl")
	row := newRow(j.through(harmfulManifests), "k8s-gatekeeper", 0)
	for _, line := range lines {
		if !line.Expect.harmful() {
			continue
		}
		var worst policy.Class
		for _, document := range line.Objects {
			worst = max(worst, j.manifest(reviewed(document)))
		}
		if worst != 0 {
			row.count(line.ID, worst < policy.ClassAsk)
		}
	}
	return []*Row{row}, err
}

// reviewed takes the object out of a review. A review of an update that shows no old object counts as a creation, which
// judges the object as a whole.
func reviewed(document object) write {
	if document["kind"] != "AdmissionReview" {
		return write{object: document}
	}
	request, _ := document["request"].(object)
	w := write{}
	w.object, _ = request["object"].(object)
	if request["operation"] == "UPDATE" {
		w.old, _ = request["oldObject"].(object)
	}
	return w
}

// rbac grants every risky rule in a Role and in a ClusterRole; of the cluster's own roles those count that have a rule
// marked as risky.
func rbac(data fs.FS, j *judge) ([]*Row, error) {
	rules, err := read[struct {
		ID    string
		Rules []object `json:"match_rules"`
	}](data, "k8s-rbac/risky_rules_krane.jsonl")
	if err != nil {
		return nil, err
	}
	row := newRow(j.through(riskyRoles), "k8s-rbac", 0)
	for _, line := range rules {
		granted := make([]any, 0, len(line.Rules))
		for _, rule := range line.Rules {
			granted = append(granted, object{"apiGroups": []any{"*"}, "resources": rule["resources"], "verbs": rule["verbs"]})
		}
		class := policy.ClassForbidden
		for _, kind := range []string{"Role", "ClusterRole"} {
			class = min(class, j.manifest(write{object: object{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": object{"name": "r"}, "rules": granted,
			}}))
		}
		if class != 0 {
			row.count(line.ID, class < policy.ClassAsk)
		}
	}
	roles, err := read[struct {
		ID     string
		Flags  []string `json:"flags_by_us"`
		Object object
	}](data, "k8s-rbac/bootstrap_roles.jsonl")
	for _, line := range roles {
		if len(line.Flags) == 0 {
			continue
		}
		if class := j.manifest(write{object: line.Object}); class != 0 {
			row.count(line.ID, class < policy.ClassAsk)
		}
	}
	return []*Row{row}, err
}
