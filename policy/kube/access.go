package kube

import "stepbeyond.dev/stepbeyond/policy"

// judgeDeletion looks at what a deletion or an eviction takes along.
func (j *judge) judgeDeletion() {
	options := j.root("options", j.req.Options)
	if isEviction(&j.req) {
		options = j.object.object("deleteOptions")
	}
	if j.req.Name == "" {
		// A deletion of a collection arrives once per object, each time without a name.
		j.present(policy.Unbounded, "a collection is deleted, not one named object")
	}
	if j.verb == policy.VerbDelete && j.req.OldObject == nil {
		j.present(policy.Ambiguous, "the review does not show what is deleted")
	}
	switch {
	case j.req.kind() == pods && j.foreign():
		j.judgePodDeletion(options)
	case j.req.kind() == statefulSets && retention(j.old, "whenDeleted") == "Delete":
		j.present(policy.Destructive, "the StatefulSet deletes its claims with itself")
	}
}

func (j *judge) judgePodDeletion(options object) {
	grace, set := options.number("gracePeriodSeconds")
	switch {
	case set && grace == 0:
		j.present(policy.Destructive, "a Pod that this session did not make is killed without grace")
	case j.known.Recreated && j.req.Name != "":
		why := "its controller makes the Pod again and has another ready replica"
		j.authoritative(policy.Destructive, policy.Absent, why)
		j.authoritative(policy.MaterialAssumption, policy.Present, why)
	default:
		j.present(policy.Destructive, "a Pod that this session did not make and that nothing is known to stand in for")
	}
}

// harmlessExec are the harms that a literal command in an own pod does not do beyond what its judged template does.
var harmlessExec = []policy.Fact{
	policy.External, policy.Sends, policy.Cost, policy.Credentials, policy.Security, policy.Destructive,
	policy.Unbounded, policy.EscalatesAuthority, policy.ExfiltratesSecret, policy.PersistsSensitiveMemory,
	policy.MaterialAssumption, policy.Ambiguous,
}

// judgeConnect vouches for one case only: a command, without stdin and tty, in a pod that this session made. What runs
// there is unseen, and could have been put into the template that was judged. All else stays unknown, which is ASK.
func (j *judge) judgeConnect() {
	command := j.object.strings("command")
	interactive := j.object.flag("stdin") || j.object.flag("tty")
	if j.req.kind() != pods || j.req.Subresource != "exec" || j.foreign() || interactive || len(command) == 0 {
		return
	}
	v := policy.FactValue{Provenance: policy.Parsed, Why: "a literal command in a Pod that this session made"}
	v.Presence = policy.Present
	j.facts.Add(policy.Reversible, v)
	v.Presence = policy.Absent
	for _, fact := range harmlessExec {
		j.facts.Add(fact, v)
	}
}
