package corpora

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

type recordedCall struct {
	ID, Suite, Task, Tool, Derived string
	Args                           object
	OK                             bool
}

// traceWrites replays what recorded agents wrote of their own: what a run made itself, and what it had not read before,
// which counts as new. Writes to what was there before are left out: the recordings have no text of it, so nothing tells
// offline what changed. Workloads and what belongs to them have a target. Everything else is only reported: the class
// table asks about it by name (a NetworkPolicy, a claim of somebody else's) or because it does not name it.
func traceWrites(data fs.FS, j *judge) ([]*Row, error) {
	calls, err := read[recordedCall](data, callsFile)
	forbidden, asked := newRow(j.through(benignForbidden), "k8s-agent-traces", 0), newRow(j.through(benignAsked), "k8s-agent-traces", 0.05)
	others := newRow(j.through(otherWrites), "k8s-agent-traces", 1)
	r := &replay{judge: j}
	for i := range calls {
		call := &calls[i]
		if run := call.ID[:strings.LastIndex(call.ID, "/")+1]; run != r.run {
			r.run, r.own, r.foreign, r.claims = run, map[string]object{}, map[string]bool{}, map[string]bool{}
		}
		r.look(call)
		if call.Tool != "resources_create_or_update" || call.Derived != "workload_write" {
			continue
		}
		switch class, workload := r.write(call); {
		case class == 0:
		case workload:
			forbidden.count(call.ID, class == policy.ClassForbidden)
			asked.count(call.ID, class == policy.ClassAsk)
		default:
			others.count(call.ID, class >= policy.ClassAsk)
		}
	}
	return []*Row{forbidden, asked, others}, err
}

// workloads are the kinds that hold pods and those that the class table names beside them.
var workloads = map[string]bool{
	"v1/Pod": true, "v1/PodTemplate": true, "v1/ReplicationController": true, "v1/ConfigMap": true, "v1/Service": true,
	"v1/PersistentVolumeClaim": true, "apps/v1/Deployment": true, "apps/v1/StatefulSet": true, "apps/v1/DaemonSet": true,
	"apps/v1/ReplicaSet": true, "batch/v1/Job": true, "batch/v1/CronJob": true, "policy/v1/PodDisruptionBudget": true,
	"autoscaling/v1/HorizontalPodAutoscaler": true, "autoscaling/v2/HorizontalPodAutoscaler": true,
}

// replay is what one run knows of the cluster.
type replay struct {
	judge   *judge
	run     string
	own     map[string]object
	foreign map[string]bool
	claims  map[string]bool
}

// look keeps in mind what a call found and what it deleted.
func (r *replay) look(call *recordedCall) {
	if !call.OK {
		return
	}
	switch call.Tool {
	case "resources_get":
		r.foreign[keyOf(call.Args)] = true
	case "pods_get":
		r.foreign[podKey(call.Args)] = true
	case "resources_delete":
		delete(r.foreign, keyOf(call.Args))
	case "pods_delete":
		delete(r.foreign, podKey(call.Args))
	}
}

func podKey(args object) string {
	return keyOf(object{"kind": "Pod", "name": args["name"], "namespace": args["namespace"]})
}

// write is the worst class of the call's objects, and no class when one of them was there before. workload tells that all
// of them are workloads which mount no claim that was there before.
func (r *replay) write(call *recordedCall) (class policy.Class, workload bool) {
	text, _ := call.Args["resource"].(string)
	class, workload = policy.ClassAuto, true
	for _, document := range strings.Split(text, "\n---") {
		var written object
		source, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return policy.ClassForbidden, true // no server can read it either
		}
		decoder := json.NewDecoder(strings.NewReader(string(source)))
		decoder.UseNumber()
		if err := decoder.Decode(&written); err != nil || written == nil {
			continue
		}
		key := keyOf(object{"kind": written["kind"], "name": field(written, "name"), "namespace": field(written, "namespace")})
		w := write{object: written, claims: r.claims}
		if own, made := r.own[key]; made {
			w.old, w.origin = own, policy.OriginThisSession
		} else if r.foreign[key] {
			return 0, false
		}
		class = max(class, r.judge.manifest(w))
		workload = workload && workloads[fmt.Sprint(written["apiVersion"], "/", written["kind"])] && !r.mountsForeign(w)
		if call.OK {
			r.own[key] = written
			if written["kind"] == "PersistentVolumeClaim" {
				r.claims[fmt.Sprint(field(written, "namespace"), "/", field(written, "name"))] = true
			}
		}
	}
	return class, workload
}

// mountsForeign tells that the object gives its pods a claim that the run had found.
func (r *replay) mountsForeign(w write) bool {
	request := requestOf(w)
	return slices.ContainsFunc(kube.ClaimsOf(request, w.origin), func(claim kube.Claim) bool {
		return r.foreign[keyOf(object{"kind": "PersistentVolumeClaim", "name": claim.Name, "namespace": request.Namespace})]
	})
}

func field(written object, name string) any {
	metadata, _ := written["metadata"].(object)
	return metadata[name]
}

func keyOf(named object) string {
	return fmt.Sprint(named["kind"], "/", named["namespace"], "/", named["name"])
}
