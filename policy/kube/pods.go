package kube

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// template is a pod spec with the metadata that belongs to it.
type template struct{ metadata, spec object }

// templatePath leads from an object to its pod template; ok is false for kinds that hold none. Every request asks several
// times, so it is a comparison and not a look-up.
func templatePath(kind groupResource) (path []string, ok bool) {
	switch kind.group {
	case "":
		switch kind.resource {
		case "pods":
			return nil, true
		case "podtemplates":
			return ownTemplate, true
		case "replicationcontrollers":
			return specTemplate, true
		}
	case "apps":
		switch kind.resource {
		case "deployments", "replicasets", "daemonsets", "statefulsets":
			return specTemplate, true
		}
	case "batch":
		switch kind.resource {
		case "jobs":
			return specTemplate, true
		case "cronjobs":
			return jobsTemplate, true
		}
	}
	return nil, false
}

var (
	ownTemplate  = []string{"template"}
	specTemplate = []string{"spec", "template"}
	jobsTemplate = []string{"spec", "jobTemplate", "spec", "template"}
)

// showsPods tells that the request's objects are of the kind itself, and not a Scale, an Eviction or options.
func showsPods(req *Request) bool {
	if _, ok := templatePath(req.kind()); !ok || req.Operation == "CONNECT" {
		return false
	}
	switch req.Subresource {
	case "", "status", "resize", "ephemeralcontainers":
		return true
	default:
		return false
	}
}

func templateOf(kind groupResource, o object) template {
	path, _ := templatePath(kind)
	for _, key := range path {
		o = o.object(key)
	}
	return template{metadata: o.object("metadata"), spec: o.object("spec")}
}

// templates of the new and of the old object; they are read when they are first asked for.
func (j *judge) templates() (now, was template) {
	if !j.templated {
		kind := j.req.kind()
		j.now, j.was, j.templated = templateOf(kind, j.object), templateOf(kind, j.old), true
	}
	return j.now, j.was
}

// podTemplates of the new object.
func (j *judge) podTemplates() []policy.PodTemplate {
	switch {
	case holdsOthers(&j.req):
		return embeddedTemplates(&j.req)
	case !showsPods(&j.req), j.verb == policy.VerbDelete:
		return nil
	}
	if now, _ := j.templates(); now.spec.fields != nil {
		return []policy.PodTemplate{podTemplateOf(now.spec)}
	}
	return nil
}

func podTemplateOf(spec object) policy.PodTemplate {
	containers := 0
	for _, list := range containerLists {
		items, _ := spec.fields[list].([]any) // what is no list fails below
		containers += len(items)
	}
	images := slices.Grow([]string(nil), containers)
	for _, list := range containerLists {
		for container := range spec.objects(list) {
			images = append(images, container.text("image"))
		}
	}
	for volume := range spec.objects("volumes") {
		if reference := volume.object("image").text("reference"); reference != "" {
			images = append(images, reference)
		}
	}
	return policy.PodTemplate{ServiceAccountName: accountOf(spec), Images: images}
}

// containerLists are the fields of a pod spec that hold containers.
var containerLists = []string{"initContainers", "containers", "ephemeralContainers"}

// accountOf reads the ServiceAccount, also from the deprecated field.
func accountOf(spec object) string {
	name, deprecated := spec.text("serviceAccountName"), spec.text("serviceAccount")
	if name == "" {
		return deprecated
	}
	return name
}

// judgePods judges the pod spec of a create, or of an update that changes what the pods run.
func (j *judge) judgePods() {
	switch {
	case holdsOthers(&j.req):
		j.judgeEmbedded()
		return
	case !showsPods(&j.req), j.verb == policy.VerbDelete:
		return
	}
	now, was := j.templates()
	if j.req.Subresource == "ephemeralcontainers" {
		j.judgeEphemeral(now.spec, was.spec)
		return
	}
	if j.known.Followed && j.verb == policy.VerbUpdate && j.templateChanges(now, was) {
		j.present(policy.Security, "another agent's session follows this workload, and its pods would belong to this one")
	}
	j.judgeTemplate(now, was)
}

// templateChanges compares what pods are made from, but for the mark of the writer. A Pod's own labels and annotations
// are no template.
func (j *judge) templateChanges(now, was template) bool {
	if !reflect.DeepEqual(now.spec.fields, was.spec.fields) {
		return true
	}
	return j.req.kind() != pods && !reflect.DeepEqual(unmarked(now.metadata.fields), unmarked(was.metadata.fields))
}

// unmarked is the metadata of a template without the mark of its writer.
func unmarked(metadata map[string]any) map[string]any {
	plain := maps.Clone(metadata)
	annotations, _ := plain["annotations"].(map[string]any)
	kept := maps.Clone(annotations)
	delete(kept, AnnotationTemplateWriter)
	delete(plain, "annotations")
	if len(kept) > 0 {
		plain["annotations"] = kept
	}
	return plain
}

// judgeTemplate judges one pod template against what it was.
func (j *judge) judgeTemplate(now, was template) {
	j.judgePriority(now.spec, was.spec)
	if j.verb == policy.VerbUpdate && runsSame(now, was) {
		j.judgeControlPlane(now.spec, was.spec)
		return
	}
	j.judgeControlPlane(now.spec, object{})
	j.judgePlacement(now.spec, was.spec)
	if account := accountOf(now.spec); j.foreignAccount(account) || j.foreignAccount(now.spec.text("serviceAccount")) {
		j.present(policy.EscalatesAuthority, "the pod runs under a ServiceAccount that is not the caller's")
	}
	j.judgePodConfinement(now)
	j.judgeCapabilities(now.spec, was.spec)
	for _, list := range containerLists {
		for container := range now.spec.objects(list) {
			j.judgeContainer(container, now.spec)
		}
	}
	if j.verb == policy.VerbUpdate && j.foreign() && len(secretsOf(now.spec)) > 0 {
		j.present(policy.Credentials, "what a workload runs that this session did not make changes, and it reads a Secret")
	}
	j.judgeSecretUse(secretsOf(now.spec), secretsOf(was.spec))
}

// foreignAccount spares "default": where agents are governed it is governed too, and a pod that an agent writes under it acts
// in a child of the agent's session.
func (j *judge) foreignAccount(name string) bool {
	own := j.req.ServiceAccount
	return name != "" && name != "default" && (name != own.Name || j.req.Namespace != own.Namespace)
}

// judgeEphemeral judges the containers that join a running pod. The pod itself was judged when it was made, and its
// identity is reached the way exec reaches it.
func (j *judge) judgeEphemeral(now, was object) {
	before := was.list("ephemeralContainers")
	var added names
	for container := range now.objects("ephemeralContainers") {
		if containsEqual(before, container.fields) {
			continue
		}
		j.present(policy.Security, "an ephemeral container joins a running Pod")
		j.judgeContainer(container, now)
		added.addSecrets(container)
	}
	j.judgeSecretUse(added, secretsOf(was))
}

func containsEqual(list []any, fields map[string]any) bool {
	for _, item := range list {
		if reflect.DeepEqual(item, any(fields)) {
			return true
		}
	}
	return false
}

// schedulingFields of a pod spec say where and how long a pod runs, not what it runs.
var schedulingFields = []string{
	"affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "priority", "priorityClassName",
	"terminationGracePeriodSeconds", "activeDeadlineSeconds", "resources",
}

// runsSame tells that two templates differ at most in resources, scheduling and metadata without a say in confinement.
func runsSame(now, was template) bool {
	for _, prefix := range confinementAnnotations {
		if changedKey(was.metadata.object("annotations").fields, now.metadata.object("annotations").fields, prefix) {
			return false
		}
	}
	return reflect.DeepEqual(program(now.spec), program(was.spec))
}

// program is a pod spec without its scheduling and its containers' resource amounts.
func program(spec object) map[string]any {
	rest := copyOf(spec.fields)
	for _, field := range schedulingFields {
		delete(rest, field)
	}
	for _, list := range containerLists {
		var bare []map[string]any
		for container := range spec.objects(list) {
			fields := copyOf(container.fields)
			// Claims stay: they give devices.
			fields["resources"] = container.object("resources").fields["claims"]
			bare = append(bare, fields)
		}
		if len(bare) == 0 {
			delete(rest, list)
			continue
		}
		rest[list] = bare
	}
	return rest
}

func copyOf(fields map[string]any) map[string]any {
	if fields == nil {
		return map[string]any{}
	}
	return maps.Clone(fields)
}

func (j *judge) judgeSecretUse(now, was names) {
	for name := range now {
		if !was[name] {
			j.present(policy.Credentials, "the pod reads a Secret that the object did not use before")
			return
		}
	}
}

// secretVolumes are the volume sources that name a Secret.
var secretVolumes = []string{
	"azureFile", "cephfs", "cinder", "csi", "flexVolume", "iscsi", "rbd", "scaleIO", "secret", "storageos",
}

// secretsOf gathers the names of all Secrets that a pod spec reads. imagePullSecrets stay out: the kubelet uses them,
// and the pod never sees them.
func secretsOf(spec object) names {
	var found names
	for _, list := range containerLists {
		for container := range spec.objects(list) {
			found.addSecrets(container)
		}
	}
	for volume := range spec.objects("volumes") {
		for _, kind := range secretVolumes {
			if volume.fields[kind] == nil {
				continue
			}
			source := volume.object(kind)
			found.add(source.text("secretName"))
			found.add(source.object("secretRef").text("name"))
			found.add(source.object("nodePublishSecretRef").text("name"))
		}
		for source := range volume.object("projected").objects("sources") {
			found.add(source.object("secret").text("name"))
		}
	}
	return found
}

// names is a set of names of other objects. Most requests name none, so it is made with the first.
type names map[string]bool

func (n *names) add(name string) {
	if name = strings.TrimSpace(name); name != "" {
		n.set(name, true)
	}
}

func (n *names) set(name string, value bool) {
	if *n == nil {
		*n = names{}
	}
	(*n)[name] = value
}

// addSecrets adds the Secrets that a container reads by itself.
func (n *names) addSecrets(container object) {
	for variable := range container.objects("env") {
		n.add(variable.object("valueFrom").object("secretKeyRef").text("name"))
	}
	for source := range container.objects("envFrom") {
		n.add(source.object("secretRef").text("name"))
	}
}
