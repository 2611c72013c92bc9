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
	case secrets:
		j.judgeSecret()
	case namespaces:
		j.judgeNamespaceKeys()
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
		j.object.object("metadata").object("annotations").fields, "")
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

// judgeReplicas finds outages and lost claims: a foreign workload taken to nothing, and a StatefulSet whose claims go
// with its replicas.
func (j *judge) judgeReplicas() {
	req := *j.req
	if scaled, ok := withoutScale(&req); ok {
		req = scaled
	}
	object, old := j.root("object", req.Object), j.root("oldObject", req.OldObject)
	isScale := req.Subresource == "scale"
	if j.foreign() && j.req.kind() == jobs {
		j.judgeJob(object, old)
	}
	if !isScale && !scalable[req.kind()] {
		return
	}
	before, after := replicas(old, isScale), replicas(object, isScale)
	if j.foreign() && after == 0 && before != 0 {
		j.present(policy.Destructive, "a workload that this session did not make is scaled to 0")
	}
	if req.kind() != statefulSets || after >= before {
		return
	}
	switch {
	case isScale:
		j.present(policy.Ambiguous, "whether the StatefulSet deletes the claims of removed replicas is not known")
	case retention(object, "whenScaled") == "Delete" || retention(old, "whenScaled") == "Delete":
		j.present(policy.Destructive, "the StatefulSet deletes the claims of removed replicas")
	}
}

// judgeJob: suspending a Job deletes its running Pods, and so does a parallelism of 0.
func (j *judge) judgeJob(object, old object) {
	spec, was := object.object("spec"), old.object("spec")
	if spec.flag("suspend") && !was.flag("suspend") {
		j.present(policy.Destructive, "a Job that this session did not make is suspended")
	}
	now, set := spec.number("parallelism")
	if before, had := was.number("parallelism"); set && now == 0 && (!had || before != 0) {
		j.present(policy.Destructive, "a Job that this session did not make is taken to parallelism 0")
	}
}

// scalable kinds keep their replicas in spec.replicas and default it to 1.
var scalable = map[groupResource]bool{
	{"apps", "deployments"}: true, {"apps", "replicasets"}: true, statefulSets: true,
	{"", "replicationcontrollers"}: true,
}

// replicas reads spec.replicas. A Scale omits 0; everything else is defaulted to 1.
func replicas(o object, isScale bool) int64 {
	n, ok := o.object("spec").number("replicas")
	if !ok && !isScale {
		return 1
	}
	return n
}

func retention(o object, when string) string {
	return o.object("spec").object("persistentVolumeClaimRetentionPolicy").text(when)
}

// withoutScale turns a scale request of a built-in kind into the update of its parent that it is. ok is false when the
// parent was not read, or is not the object and version that the request was made against.
func withoutScale(req *Request) (Request, bool) {
	same := func(key string) bool {
		return metadataText(req.Parent, key) == metadataText(req.OldObject, key)
	}
	if req.Operation != "UPDATE" || req.Subresource != "scale" || !scalable[req.kind()] ||
		metadataText(req.Parent, "uid") == "" || !same("uid") || !same("resourceVersion") {
		return Request{}, false
	}
	scaled := *req
	scaled.Subresource, scaled.Parent = "", nil
	scaled.Kind, _ = req.Parent["kind"].(string)
	scaled.OldObject = withReplicas(req.Parent, req.OldObject)
	scaled.Object = withReplicas(req.Parent, req.Object)
	return scaled, true
}

// withReplicas is the parent with the replicas that a Scale names.
func withReplicas(parent, scale map[string]any) map[string]any {
	result, spec := copyOf(parent), map[string]any{}
	if was, ok := parent["spec"].(map[string]any); ok {
		spec = copyOf(was)
	}
	spec["replicas"] = int64(0)
	if named, ok := scale["spec"].(map[string]any); ok && named["replicas"] != nil {
		spec["replicas"] = named["replicas"]
	}
	result["spec"] = spec
	return result
}
