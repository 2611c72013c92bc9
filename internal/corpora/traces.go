package corpora

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/policy"
)

type recordedCall struct {
	ID, Suite, Task, Tool, Derived string
	Args                           object
	OK                             bool
}

// traceWrites replays what recorded agents wrote of their own: what a run made itself, and what it had not read before,
// which counts as new. Writes to what was there before are left out: the recordings have no text of it, so nothing tells
// offline what changed.
func traceWrites(data fs.FS, j *judge) ([]*Row, error) {
	calls, err := read[recordedCall](data, callsFile)
	forbidden, asked := newRow(benignForbidden, "k8s-agent-traces", 0), newRow(benignAsked, "k8s-agent-traces", 0.05)
	r := &replay{judge: j}
	for i := range calls {
		call := &calls[i]
		if run := call.ID[:strings.LastIndex(call.ID, "/")+1]; run != r.run {
			r.run, r.own, r.foreign, r.claims = run, map[string]object{}, map[string]bool{}, map[string]bool{}
		}
		if call.Tool == "resources_get" && call.OK {
			r.foreign[keyOf(call.Args)] = true
		}
		if call.Tool != "resources_create_or_update" || call.Derived != "workload_write" {
			continue
		}
		class := r.write(call)
		if class == 0 {
			continue
		}
		forbidden.count(call.ID, class == policy.ClassForbidden)
		asked.count(call.ID, class == policy.ClassAsk)
	}
	return []*Row{forbidden, asked}, err
}

// replay is what one run knows of the cluster.
type replay struct {
	judge   *judge
	run     string
	own     map[string]object
	foreign map[string]bool
	claims  map[string]bool
}

// write is the worst class of the call's objects, and no class when one of them was there before.
func (r *replay) write(call *recordedCall) policy.Class {
	text, _ := call.Args["resource"].(string)
	class := policy.ClassAuto
	for _, document := range strings.Split(text, "\n---") {
		var written object
		source, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return policy.ClassForbidden // no server can read it either
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
			return 0
		}
		class = max(class, r.judge.manifest(w))
		if call.OK {
			r.own[key] = written
			if written["kind"] == "PersistentVolumeClaim" {
				r.claims[fmt.Sprint(field(written, "namespace"), "/", field(written, "name"))] = true
			}
		}
	}
	return class
}

func field(written object, name string) any {
	metadata, _ := written["metadata"].(object)
	return metadata[name]
}

func keyOf(named object) string {
	return fmt.Sprint(named["kind"], "/", named["namespace"], "/", named["name"])
}
