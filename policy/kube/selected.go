package kube

import (
	"reflect"

	"stepbeyond.dev/stepbeyond/policy"
)

// Selection is what decides which Services and controllers the pods of a request join, and what its own controller would
// take besides.
type Selection struct {
	// Labels of the pods that the request makes or relabels, one set for each template. Those that an update leaves as
	// they were are not among them.
	Labels []map[string]string
	// Bare tells that the labels are those of a Pod that has no controller.
	Bare bool
	// Orphans is what the controller of a new workload adopts when it has none: "pods" or "replicasets"; empty: nothing.
	Orphans string
	// Selector of the orphans, as a LabelSelector.
	Selector map[string]any
}

// adopting kinds take what matches their selector and has no controller. A Job does so only with a selector of its own,
// which is asked about in itself.
var adopting = map[groupResource]string{
	{"apps", "deployments"}: "replicasets", {"apps", "replicasets"}: "pods", {"apps", "daemonsets"}: "pods", statefulSets: "pods",
	{"", "replicationcontrollers"}: "pods",
}

// SelectionOf reads a create or an update. It is empty for every other request.
func SelectionOf(req *Request) Selection {
	if req.Operation != "CREATE" && req.Operation != "UPDATE" || req.Subresource != "" {
		return Selection{}
	}
	var s Selection
	var r reading // what cannot be read is [Operation]'s to refuse
	object, old := r.root("object", req.Object), r.root("oldObject", req.OldObject)
	switch {
	case holdsOthers(req):
		for _, pod := range search(req.Object, req.OldObject).pods {
			s.add(pod.now.metadata, pod.was.metadata)
		}
	case req.kind() == groupResource{"", "podtemplates"}: // nothing makes pods of it
	case showsPods(req):
		s.add(templateOf(req.kind(), object).metadata, templateOf(req.kind(), old).metadata)
		s.Bare = req.kind() == pods && len(s.Labels) > 0 && !controlled(object.object("metadata"))
	}
	selector, was := object.object("spec").object("selector").fields, old.object("spec").object("selector").fields
	if orphans := adopting[req.kind()]; orphans != "" && len(selector) > 0 && !reflect.DeepEqual(selector, was) {
		s.Orphans, s.Selector = orphans, selector
		if req.Group == "" { // a ReplicationController's is plain labels
			s.Selector = map[string]any{"matchLabels": selector}
		}
	}
	return s
}

func (s *Selection) add(now, was object) {
	labels, before := now.object("labels"), was.object("labels")
	if len(labels.fields) == 0 || reflect.DeepEqual(labels.fields, before.fields) {
		return
	}
	set := map[string]string{}
	for key := range labels.fields {
		set[key] = labels.text(key)
	}
	s.Labels = append(s.Labels, set)
}

// judgeSelection: a label is enough to take part of a Service's traffic, and to make a controller delete one pod for
// another; a selector is enough to take what is there.
func (j *judge) judgeSelection() {
	if j.known.Serves {
		j.present(policy.Security, "a Service that this session did not make would send its traffic to the pods")
	}
	if j.known.Adopted {
		j.present(policy.Destructive, "a controller that this session did not make would take the Pod, and delete it or another")
	}
	if j.known.Adopts {
		j.present(policy.Destructive, "the workload would take what this session did not make, and can delete it")
	}
}
