package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"stepbeyond.dev/stepbeyond/policy"
)

// clusterVolumes are the fields of a volume whose content comes from the cluster or goes with the Pod. Everything else is
// a driver or a server that the Pod names by itself. A hostPath is judged for itself.
var clusterVolumes = []string{
	"name", "configMap", "downwardAPI", "emptyDir", "ephemeral", "hostPath", "image", "persistentVolumeClaim", "projected",
	"secret",
}

func (j *judge) judgeVolume(volume object) {
	// Present counts, whatever is inside: a hostPath without a path is the API server's to refuse.
	if volume.object("hostPath").fields != nil {
		j.present(policy.EscalatesAuthority, "the pod mounts a path of the node: hostPath")
	}
	for field, source := range volume.fields {
		if source != nil && !slices.Contains(clusterVolumes, field) {
			j.present(policy.Security, "the pod mounts storage by itself, past claims and storage classes")
		}
	}
	if reachesData(volume.object("ephemeral").object("volumeClaimTemplate").object("spec"), object{}) {
		j.present(policy.Security, "a volume of the pod is made from data that is there already")
	}
}

// judgeClaimTemplates judges the claims of a StatefulSet that controllers would make.
func (j *judge) judgeClaimTemplates() {
	now, was := j.object.object("spec"), j.old.object("spec")
	if reflect.DeepEqual(now.fields["volumeClaimTemplates"], was.fields["volumeClaimTemplates"]) {
		return
	}
	for claim := range now.objects("volumeClaimTemplates") {
		if reachesData(claim.object("spec"), object{}) {
			j.present(policy.Security, "a claim of the StatefulSet is made from data that is there already")
		}
	}
}

// MaxClaims bounds how many claims of one request are looked at. A request that gives pods more counts as one that gives
// them foreign ones.
const MaxClaims = 8

// Claim is a PersistentVolumeClaim in the namespace of the request.
type Claim struct {
	Name string
	// Generated tells that the name is the one of a claim template of a StatefulSet, not one that the request chose.
	Generated bool
}

// ClaimsOf lists the claims that a create, an update or a scale gives to pods that had them not, sorted by name and at
// most MaxClaims+1. All claims count where an update changes what a workload runs that this session did not make: what
// runs there can read and wipe them. origin is the target's. Request.Parent counts as in [Operation].
func ClaimsOf(req Request, origin policy.Origin) []Claim { return claimsOf(&req, origin) }

func claimsOf(req *Request, origin policy.Origin) []Claim {
	if scaled, ok := withoutScale(req); ok {
		req = &scaled
	}
	if req.Operation != "CREATE" && req.Operation != "UPDATE" {
		return nil
	}
	foreign := req.Operation == "UPDATE" && origin != policy.OriginThisSession
	var found names // with the value of Claim.Generated
	switch {
	case holdsOthers(req):
		for _, pod := range search(req.Object, req.OldObject).pods {
			found.addClaims(pod.now, pod.was, foreign)
		}
	case showsPods(req):
		var r reading // what cannot be read is Operation's to refuse, so the errors need no path
		object, old := object{req.Object, &r}, object{req.OldObject, &r}
		now, was := templateOf(req.kind(), object), templateOf(req.kind(), old)
		if foreign && runsSame(now, was) {
			return nil
		}
		if foreign {
			old.fields = nil
		}
		if req.kind() == statefulSets {
			for _, name := range generatedClaims(object, old) {
				found.set(name, true)
			}
		}
		found.addClaims(now, was, foreign)
	}
	if len(found) == 0 {
		return nil
	}
	var given []Claim
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if len(given) <= MaxClaims {
			given = append(given, Claim{Name: name, Generated: found[name]})
		}
	}
	return given
}

// addClaims adds the claims that one pod template gives to pods, in favour of names that the request chose.
func (n *names) addClaims(now, was template, foreign bool) {
	if foreign && runsSame(now, was) {
		return
	}
	var before names
	if !foreign {
		before = namedClaims(was.spec)
	}
	for name := range namedClaims(now.spec) {
		if !before[name] {
			n.set(name, false)
		}
	}
}

func namedClaims(spec object) names {
	var found names
	for volume := range spec.objects("volumes") {
		found.add(volume.object("persistentVolumeClaim").text("claimName"))
	}
	return found
}

// generatedClaims names the claims of the replicas that the old StatefulSet did not have, at most MaxClaims+1. Claims that
// are there already under these names are mounted as they are.
func generatedClaims(now, old object) []string {
	name := now.object("metadata").text("name")
	from, to := ordinals(now)
	had := map[string]bool{}
	for claim := range old.object("spec").objects("volumeClaimTemplates") {
		had[claim.object("metadata").text("name")] = true
	}
	var names []string
	for claim := range now.object("spec").objects("volumeClaimTemplates") {
		claimName := claim.object("metadata").text("name")
		first, last := int64(0), int64(0)
		if had[claimName] {
			first, last = ordinals(old)
		}
		for i := from; i < to && len(names) <= MaxClaims; i++ {
			if i >= first && i < last {
				i = last - 1
				continue
			}
			names = append(names, fmt.Sprintf("%s-%s-%d", claimName, name, i))
		}
	}
	return names
}

// ordinals of a StatefulSet's replicas: from and up to, without the last.
func ordinals(o object) (from, to int64) {
	from, _ = o.object("spec").object("ordinals").number("start")
	return from, from + replicas(o, false)
}

// judgeClaims compares what the request gives to pods with what the session made.
func (j *judge) judgeClaims() {
	given := claimsOf(&j.req, j.known.Origin)
	foreign := func(c Claim) bool { return !slices.Contains(j.known.OwnClaims, c.Name) }
	if len(given) > MaxClaims || slices.ContainsFunc(given, foreign) {
		j.present(policy.Destructive, "the pod mounts a claim that this session did not make, and can read and wipe it")
	}
}
