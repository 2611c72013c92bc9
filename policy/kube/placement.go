package kube

import (
	"reflect"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// controlPlaneMarks are the labels and taints that keep nodes for the cluster itself: of kubeadm, of its releases before
// 1.25, of other installers, and the taint of nodes for system add-ons.
var controlPlaneMarks = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/controlplane",
	"node-role.kubernetes.io/etcd", "node.kubernetes.io/microk8s-controlplane", "CriticalAddonsOnly",
}

// judgePriority: the system's own classes drive other Pods off their nodes. So may any other class; nobody here knows
// whose.
func (j *judge) judgePriority(now, was object) {
	switch class := now.text("priorityClassName"); {
	case class == "", class == was.text("priorityClassName"):
	case strings.HasPrefix(class, "system-"):
		j.present(policy.Security, "the pod takes a priority class of the system")
	default:
		j.present(policy.MaterialAssumption, "the pod's priority class can displace pods of others")
	}
}

// judgePlacement finds pods that pass the scheduler by, and those with another sandbox than they had or than is usual.
func (j *judge) judgePlacement(now, was object) {
	if node := now.text("nodeName"); node != "" && node != was.text("nodeName") {
		j.present(policy.Security, "the pod chooses its node past the scheduler: nodeName")
	}
	if now.text("runtimeClassName") != was.text("runtimeClassName") {
		j.present(policy.Security, "the pod chooses its container runtime: runtimeClassName")
	}
}

// judgeControlPlane finds pods that may or want to run beside the API server and its data. What stands in was counts as
// allowed.
func (j *judge) judgeControlPlane(now, was object) {
	before := was.list("tolerations")
	for toleration := range now.objects("tolerations") {
		if toleratesControlPlane(toleration) && !containsEqual(before, toleration.fields) {
			j.present(policy.Security, "the pod tolerates the taint of control-plane nodes: tolerations")
		}
	}
	selector, affinity := now.object("nodeSelector"), nodeAffinity(now)
	if marked(selector.fields) && !reflect.DeepEqual(selector.fields, was.object("nodeSelector").fields) {
		j.present(policy.Security, "the pod selects control-plane nodes: nodeSelector")
	}
	if seeksControlPlane(affinity) && !reflect.DeepEqual(affinity.fields, nodeAffinity(was).fields) {
		j.present(policy.Security, "the pod selects control-plane nodes: nodeAffinity")
	}
}

// toleratesControlPlane: a toleration without a key fits every taint.
func toleratesControlPlane(toleration object) bool {
	key := toleration.text("key")
	return key == "" || slices.Contains(controlPlaneMarks, key)
}

func marked(labels map[string]any) bool {
	return slices.ContainsFunc(controlPlaneMarks, func(mark string) bool {
		_, found := labels[mark]
		return found
	})
}

func nodeAffinity(spec object) object { return spec.object("affinity").object("nodeAffinity") }

// seeksControlPlane looks at required and at preferred terms: a preference decides where no taint does.
func seeksControlPlane(affinity object) bool {
	if affinity.fields == nil {
		return false
	}
	terms := slices.Collect(affinity.object("requiredDuringSchedulingIgnoredDuringExecution").objects("nodeSelectorTerms"))
	for preferred := range affinity.objects("preferredDuringSchedulingIgnoredDuringExecution") {
		terms = append(terms, preferred.object("preference"))
	}
	return slices.ContainsFunc(terms, func(term object) bool {
		return contains(term.objects("matchExpressions"), func(e object) bool {
			avoids := e.text("operator") == "NotIn" || e.text("operator") == "DoesNotExist"
			return !avoids && slices.Contains(controlPlaneMarks, e.text("key"))
		})
	})
}
