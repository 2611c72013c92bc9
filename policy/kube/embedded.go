package kube

import (
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// holdsOthers tells that the request writes an object of a kind without a pod template of its own. What is inside is
// searched: controllers make pods and other objects of it, with their own rights and without a request of the caller's.
func holdsOthers(req *Request) bool {
	_, built := templatePath(req.kind())
	return !built && (req.Operation == "CREATE" || req.Operation == "UPDATE")
}

// judgeEmbedded judges what a controller could make of the object. A pod spec counts as in a built-in kind. What only
// looks like a part of one, or is a whole object, is asked about: nobody here knows what its controller does with it.
func (j *judge) judgeEmbedded() {
	found := search(j.req.Object, j.req.OldObject)
	for _, pod := range found.pods {
		j.judgeTemplate(pod.now, pod.was)
		j.judgeLineage(pod.now, pod.was)
	}
	unreadable := found.r.err != nil
	for _, container := range found.containers {
		j.judgeLoneContainer(container, &found.r)
	}
	for _, part := range found.parts {
		j.judgePart(part)
	}
	for _, copied := range found.copied {
		if changedKey(copied.was, copied.now, ownPrefix) {
			j.present(policy.EscalatesAuthority, "a stepbeyond.dev key would be copied onto what is made from the object")
		}
	}
	for _, manifest := range found.manifests {
		j.judgeManifest(manifest)
	}
	if unreadable || found.tooDeep {
		j.present(policy.Ambiguous, "what the object makes a controller run cannot be read to its end")
	}
}

// judgeLineage: pods that another controller makes under the agent's own identity carry no mark of their writer, so each
// would have a session of its own.
func (j *judge) judgeLineage(now, was template) {
	own, account := j.req.ServiceAccount.Name, accountOf(now.spec)
	named := account == own || account == "" && own == "default"
	if own != "" && named && (j.verb == policy.VerbCreate || account != accountOf(was.spec)) {
		j.present(policy.Security, "a controller would make pods under the agent's identity without the agent's lineage")
	}
}

// judgeLoneContainer judges a container that no pod spec holds: a step of a pipeline, a task of a workflow.
func (j *judge) judgeLoneContainer(c place, r *reading) {
	if j.verb == policy.VerbUpdate && !c.changed() {
		return
	}
	now, was := object{c.now, r}, object{c.was, r}
	j.judgeContainer(now, now)
	var read, before names
	read.addSecrets(now)
	before.addSecrets(was)
	if j.verb == policy.VerbUpdate && j.foreign() && len(read) > 0 {
		before = nil
	}
	j.judgeSecretUse(read, before)
	j.judgePart(c)
}

// judgePart looks for what would escalate in a pod, unless something does already.
func (j *judge) judgePart(c place) {
	known := j.facts[policy.EscalatesAuthority].Presence == policy.Present
	if known || j.verb == policy.VerbUpdate && !c.changed() {
		return
	}
	apart := judge{reading: &reading{}, req: j.req, known: j.known, verb: j.verb}
	fields := object{c.now, apart.reading}
	apart.judgePodConfinement(template{metadata: object{r: apart.reading}, spec: fields})
	apart.judgeContainer(fields, fields)
	name := accountOf(fields)
	account := j.foreignAccount(name) || j.foreignAccount(fields.text("serviceAccount"))
	if name != "" && name == j.req.ServiceAccount.Name {
		j.present(policy.Security, "a controller would make pods under the agent's identity without the agent's lineage")
	}
	if account || apart.facts[policy.EscalatesAuthority].Presence == policy.Present {
		j.present(policy.Security, "the object has a field that would give a pod another identity or a way to its node")
	}
}

// closedGroups are written by people only, also through another controller.
var closedGroups = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io",
	"rbac.authorization.k8s.io", "stepbeyond.dev",
}

// judgeManifest looks at an object that another controller is given to write. A claim is what workloads bring along.
func (j *judge) judgeManifest(c place) {
	version, _ := c.now["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	switch {
	case j.verb == policy.VerbUpdate && !c.changed():
	case grouped && slices.Contains(closedGroups, group):
		j.present(policy.EscalatesAuthority, "another controller is given an object to write that is closed to agents")
	case version == "v1" && c.now["kind"] == "PersistentVolumeClaim":
	default:
		j.present(policy.Security, "another controller is given an object to write, with rights of its own")
	}
}

// embeddedTemplates lists the pods and lone containers of the new object for rules.
func embeddedTemplates(req *Request) []policy.PodTemplate {
	found := search(req.Object, req.OldObject)
	var list []policy.PodTemplate
	for _, pod := range found.pods {
		list = append(list, podTemplateOf(pod.now.spec))
	}
	for _, container := range found.containers {
		list = append(list, policy.PodTemplate{Images: []string{object{container.now, &found.r}.text("image")}})
	}
	return list
}
