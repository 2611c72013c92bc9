package kube

import (
	"reflect"

	"stepbeyond.dev/stepbeyond/policy"
)

// judgeKind finds what depends on the content of one kind.
func (j *judge) judgeKind() {
	if j.req.Subresource == "proxy" {
		j.present(policy.EscalatesAuthority, "a proxy reaches what network and RBAC keep apart")
	}
	switch j.req.kind() {
	case services:
		j.judgeService()
	case claims:
		j.judgeClaim()
	case groupResource{"policy", "poddisruptionbudgets"}:
		j.judgeDisruptionBudget()
	case secrets:
		j.judgeSecret()
	case groupResource{"networking.k8s.io", "networkpolicies"}:
		j.judgeNetworkPolicy()
	case groupResource{"", "serviceaccounts"}:
		if j.req.Subresource == "token" {
			j.present(policy.EscalatesAuthority, "a token of a ServiceAccount is issued")
		}
	}
}

// judgeService finds exposure. Of an exposed Service every change of the spec counts, and every change of annotations,
// because cloud controllers read from those how public it is; labels do not.
func (j *judge) judgeService() {
	if j.verb != policy.VerbCreate && j.verb != policy.VerbUpdate {
		return
	}
	spec, was := j.object.object("spec"), j.old.object("spec")
	specChanged := !reflect.DeepEqual(spec.fields, was.fields)
	changed := specChanged || changedKey(j.old.object("metadata").object("annotations").fields,
		j.object.object("metadata").object("annotations").fields, "", unboundAnnotations...)
	if why := exposure(spec); why != "" && changed {
		j.present(policy.External, why)
	}
	selectorChanged := !reflect.DeepEqual(spec.object("selector").fields, was.object("selector").fields)
	if j.verb == policy.VerbUpdate && j.foreign() && selectorChanged {
		j.present(policy.Security, "the selector of a foreign Service changes, and its traffic goes elsewhere")
	}
}

func exposure(spec object) string {
	switch kind := spec.text("type"); {
	case kind == "LoadBalancer", kind == "NodePort":
		return "a Service of type " + kind + " is reachable from outside the cluster"
	case kind == "ExternalName":
		return "a Service of type ExternalName sends traffic to a name outside the cluster"
	case kind != "" && kind != "ClusterIP":
		return "a Service of an unknown type"
	case len(spec.strings("externalIPs")) > 0:
		return "externalIPs make a Service reachable from outside the cluster"
	default:
		return ""
	}
}

func (j *judge) judgeSecret() {
	j.present(policy.Credentials, "a Secret is created, changed or deleted")
	if j.verb == policy.VerbDelete {
		return
	}
	switch j.object.text("type") {
	case "kubernetes.io/service-account-token":
		j.present(policy.EscalatesAuthority, "a Secret of this type is filled with a token of a ServiceAccount")
	case "bootstrap.kubernetes.io/token":
		j.present(policy.EscalatesAuthority, "a Secret of this type is a credential to the API server")
	}
}

// judgeNetworkPolicy: policies add up, so one that allows anything can loosen what another denies, and one that goes
// takes its isolation along. Only a new policy without any allowance is certain to tighten.
func (j *judge) judgeNetworkPolicy() {
	spec := j.object.object("spec")
	switch {
	case j.verb == policy.VerbDelete:
		j.present(policy.Security, "the isolation of a NetworkPolicy is lifted")
	case j.verb == policy.VerbUpdate && !reflect.DeepEqual(spec.fields, j.old.object("spec").fields):
		j.present(policy.Security, "a NetworkPolicy changes")
	case j.verb == policy.VerbCreate && len(spec.list("ingress"))+len(spec.list("egress")) > 0:
		j.present(policy.Security, "a NetworkPolicy with rules allows traffic that others may deny")
	case j.verb == policy.VerbCreate:
		j.facts.Add(policy.Security, policy.FactValue{
			Presence: policy.Absent, Provenance: policy.Parsed, Why: "a NetworkPolicy without rules only isolates",
		})
	}
}

// judgeDisruptionBudget finds budgets over everything: nothing that the namespace runs could be evicted without them.
func (j *judge) judgeDisruptionBudget() {
	if j.verb != policy.VerbCreate && j.verb != policy.VerbUpdate {
		return
	}
	spec := j.object.object("spec")
	if !selects(spec.object("selector")) && !reflect.DeepEqual(spec.fields, j.old.object("spec").fields) {
		j.present(policy.Security, "a PodDisruptionBudget over all Pods can hold back the drain of every node")
	}
}

// selects tells that a label selector asks for something that a Pod has; what is only excluded leaves all others.
func selects(selector object) bool {
	if len(selector.object("matchLabels").fields) > 0 {
		return true
	}
	return contains(selector.objects("matchExpressions"), func(e object) bool {
		return e.text("operator") == "In" || e.text("operator") == "Exists"
	})
}

// judgeClaim finds claims that reach data which is there already.
func (j *judge) judgeClaim() {
	if j.verb != policy.VerbCreate && j.verb != policy.VerbUpdate {
		return
	}
	if reachesData(j.object.object("spec"), j.old.object("spec")) {
		j.present(policy.Security, "the claim gives access to data that is there already: dataSource, dataSourceRef or volumeName")
	}
}

// reachesData tells that the spec of a claim names a volume, or a source to copy, that it did not name before.
func reachesData(spec, was object) bool {
	for _, field := range []string{"dataSource", "dataSourceRef", "volumeName"} {
		named := spec.fields[field]
		if named != nil && named != "" && !reflect.DeepEqual(named, was.fields[field]) {
			return true
		}
	}
	return false
}
