package kube

import (
	"maps"
	"reflect"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// template is a pod spec with the metadata that belongs to it.
type template struct{ metadata, spec object }

// templatePath leads from an object to its pod template, for the built-in kinds that hold one.
var templatePath = map[groupResource][]string{
	pods:                           {},
	{"", "podtemplates"}:           {"template"},
	{"", "replicationcontrollers"}: {"spec", "template"},
	{"apps", "deployments"}:        {"spec", "template"},
	{"apps", "replicasets"}:        {"spec", "template"},
	{"apps", "daemonsets"}:         {"spec", "template"},
	statefulSets:                   {"spec", "template"},
	jobs:                           {"spec", "template"},
	cronJobs:                       {"spec", "jobTemplate", "spec", "template"},
}

// showsPods tells that the request's objects are of the kind itself, and not a Scale, an Eviction or options.
func showsPods(req *Request) bool {
	if _, ok := templatePath[req.kind()]; !ok || req.Operation == "CONNECT" {
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
	for _, key := range templatePath[kind] {
		o = o.object(key)
	}
	return template{metadata: o.object("metadata"), spec: o.object("spec")}
}

// podTemplates of the new object.
func (j *judge) podTemplates() []policy.PodTemplate {
	switch {
	case holdsOthers(j.req):
		return embeddedTemplates(j.req)
	case !showsPods(j.req), j.verb == policy.VerbDelete:
		return nil
	}
	if spec := templateOf(j.req.kind(), j.object).spec; spec.fields != nil {
		return []policy.PodTemplate{podTemplateOf(spec)}
	}
	return nil
}

func podTemplateOf(spec object) policy.PodTemplate {
	var images []string
	for _, list := range containerLists {
		for _, container := range spec.objects(list) {
			images = append(images, container.text("image"))
		}
	}
	for _, volume := range spec.objects("volumes") {
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
	case holdsOthers(j.req):
		j.judgeEmbedded()
		return
	case !showsPods(j.req), j.verb == policy.VerbDelete:
		return
	}
	now, was := templateOf(j.req.kind(), j.object), templateOf(j.req.kind(), j.old)
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
		for _, container := range now.spec.objects(list) {
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
	added := map[string]bool{}
	for _, container := range now.objects("ephemeralContainers") {
		if containsEqual(before, container.fields) {
			continue
		}
		j.present(policy.Security, "an ephemeral container joins a running Pod")
		j.judgeContainer(container, now)
		addContainerSecrets(container, added)
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
		containers := spec.objects(list)
		if len(containers) == 0 {
			delete(rest, list)
			continue
		}
		bare := make([]map[string]any, 0, len(containers))
		for _, container := range containers {
			fields := copyOf(container.fields)
			// Claims stay: they give devices.
			fields["resources"] = container.object("resources").fields["claims"]
			bare = append(bare, fields)
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

func (j *judge) judgeSecretUse(now, was map[string]bool) {
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
func secretsOf(spec object) map[string]bool {
	names := map[string]bool{}
	for _, list := range containerLists {
		for _, container := range spec.objects(list) {
			addContainerSecrets(container, names)
		}
	}
	for _, volume := range spec.objects("volumes") {
		for _, kind := range secretVolumes {
			if volume.fields[kind] == nil {
				continue
			}
			source := volume.object(kind)
			addName(names, source.text("secretName"))
			addName(names, source.object("secretRef").text("name"))
			addName(names, source.object("nodePublishSecretRef").text("name"))
		}
		for _, source := range volume.object("projected").objects("sources") {
			addName(names, source.object("secret").text("name"))
		}
	}
	return names
}

func addContainerSecrets(container object, names map[string]bool) {
	for _, variable := range container.objects("env") {
		addName(names, variable.object("valueFrom").object("secretKeyRef").text("name"))
	}
	for _, source := range container.objects("envFrom") {
		addName(names, source.object("secretRef").text("name"))
	}
}

func addName(names map[string]bool, name string) {
	if name = strings.TrimSpace(name); name != "" {
		names[name] = true
	}
}
