package kube

import (
	"reflect"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// judgeReplicas finds outages and lost claims: a foreign workload taken to nothing, and a StatefulSet whose claims go
// with its replicas.
func (j *judge) judgeReplicas() {
	req := &j.req
	if scaled, ok := withoutScale(req); ok {
		req = &scaled
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
	if req.kind() != statefulSets || after == before {
		return
	}
	switch {
	case isScale && after < before:
		j.present(policy.Ambiguous, "whether the StatefulSet deletes the claims of removed replicas is not known")
	case isScale && !j.foreign():
		j.present(policy.Ambiguous, "which claims the new replicas of the StatefulSet mount is not known")
	case after > before:
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

// limits are the fields of a spec whose smaller number makes a controller, or the node, end or delete what is there.
var limits = map[groupResource][]string{
	pods:                    {"activeDeadlineSeconds"},
	jobs:                    {"activeDeadlineSeconds", "ttlSecondsAfterFinished", "backoffLimit"},
	cronJobs:                {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"},
	{"apps", "deployments"}: {"revisionHistoryLimit"},
	statefulSets:            {"revisionHistoryLimit"},
}

// judgeLimits finds foreign objects that are given less time or less history.
func (j *judge) judgeLimits() {
	if !j.foreign() || j.req.Subresource == "scale" {
		return
	}
	spec, was := j.object.object("spec"), j.old.object("spec")
	for _, field := range limits[j.req.kind()] {
		now, set := spec.number(field)
		if before, had := was.number(field); set && (!had || now < before) {
			j.present(policy.Destructive, "an object that this session did not make gets a smaller limit: "+field)
		}
	}
}

// judgeDelegated finds what a create or an update makes a controller do: scale, adopt, mount and delete, without a
// request that anybody would review.
func (j *judge) judgeDelegated() {
	j.judgeClaims()
	j.judgeSelection()
	if j.req.Subresource != "" {
		return
	}
	switch j.req.kind() {
	case autoscalers:
		j.judgeAutoscaler()
	case statefulSets:
		j.judgeRetention()
		j.judgeClaimTemplates()
	case jobs:
		j.judgeAdoption(j.object.object("spec"), j.old.object("spec"))
	case cronJobs:
		j.judgeAdoption(j.object.object("spec").object("jobTemplate").object("spec"),
			j.old.object("spec").object("jobTemplate").object("spec"))
	}
}

// judgeAdoption: a Job with a selector of its own adopts the Pods that match and deletes those that are too many.
func (j *judge) judgeAdoption(spec, was object) {
	if spec.flag("manualSelector") && !was.flag("manualSelector") {
		j.present(policy.Destructive, "a Job with manualSelector adopts Pods that others made, and can delete them")
	}
}

// judgeRetention finds the switch that makes a StatefulSet delete claims.
func (j *judge) judgeRetention() {
	for _, when := range []string{"whenDeleted", "whenScaled"} {
		set := retention(j.object, when) == "Delete" && retention(j.old, when) != "Delete"
		if set && (j.verb == policy.VerbUpdate || len(j.object.object("spec").list("volumeClaimTemplates")) > 0) {
			j.present(policy.Destructive, "the StatefulSet is told to delete its claims: "+when)
		}
	}
}

var autoscalers = groupResource{"autoscaling", "horizontalpodautoscalers"}

// ScaleTarget names the workload of a HorizontalPodAutoscaler, in the namespace of the autoscaler.
type ScaleTarget struct{ Group, Kind, Name string }

// ScaleTargetOf is the workload that the request makes an autoscaler scale, or scale otherwise than before; ok is false
// for every other request. The version of the reference is left out, as the autoscaler's controller leaves it out.
func ScaleTargetOf(req *Request) (target ScaleTarget, ok bool) {
	if req.kind() != autoscalers || req.Subresource != "" || req.Operation != "CREATE" && req.Operation != "UPDATE" {
		return ScaleTarget{}, false
	}
	var r reading // what cannot be read is [Operation]'s to refuse
	spec, was := r.root("object", req.Object).object("spec"), r.root("oldObject", req.OldObject).object("spec")
	if req.Operation == "UPDATE" && reflect.DeepEqual(spec.fields, was.fields) {
		return ScaleTarget{}, false
	}
	ref := spec.object("scaleTargetRef")
	group, _, found := strings.Cut(ref.text("apiVersion"), "/")
	if !found {
		group = ""
	}
	return ScaleTarget{Group: group, Kind: ref.text("kind"), Name: ref.text("name")}, true
}

// judgeAutoscaler: an autoscaler scales whatever it names, at any time. Of a foreign Deployment that is what a scale by
// hand would be; a foreign StatefulSet loses members, and what else it may be nobody knows.
func (j *judge) judgeAutoscaler() {
	target, ok := ScaleTargetOf(&j.req)
	if !ok || j.known.ScaleTarget == policy.OriginThisSession {
		return
	}
	least, set := j.object.object("spec").number("minReplicas")
	stateless := target.Group == "apps" && (target.Kind == "Deployment" || target.Kind == "ReplicaSet")
	if stateless && j.known.ScaleTarget != "" && (!set || least > 0) {
		j.present(policy.MaterialAssumption, "it scales a workload that this session did not make")
		return
	}
	j.present(policy.Destructive, "the autoscaler can scale down what this session did not make")
}
