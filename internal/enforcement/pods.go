package enforcement

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/policy"
)

// runtimeCapabilities are what container runtimes give every container; adding one of them adds nothing.
var runtimeCapabilities = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
	"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

// schedulingFields of a pod spec say where and how long a pod runs, not what it runs.
var schedulingFields = []string{
	"activeDeadlineSeconds", "affinity", "nodeSelector", "priority", "priorityClassName", "resources",
	"terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
}

var containerLists = []string{"containers", "ephemeralContainers", "initContainers"}

// pods closes pod templates that reach the node or another identity. On update it judges only requests that change what
// the pods run: who labels or resizes a person's privileged workload gains nothing. Of an ephemeral container it judges
// the container, because the pod was judged when it was made. The engine parses the same facts (policy/kube) and gives
// FORBIDDEN wherever this policy refuses; what both leave to ASK is not here.
func pods() floorPolicy {
	f := floorPolicy{
		name: FloorPods,
		variables: []variable{
			{"spec", podTemplate("object", ".?spec") + ".orValue({})"},
			{"oldSpec", `request.operation == "UPDATE" ? ` + podTemplate("oldObject", ".?spec") + ".orValue({}) : {}"},
			{"unchanged", `request.operation == "UPDATE" && ` + runsSame("variables.spec", "variables.oldSpec")},
			{"joins", `has(request.subResource) && request.subResource == "ephemeralcontainers"`},
			{"pod", `variables.joins ? {} : variables.spec`},
			{"containers", `variables.joins ? ` +
				`variables.spec.?ephemeralContainers.orValue([]).filter(c, !(c in variables.oldSpec.?ephemeralContainers.orValue([]))) : ` +
				`variables.spec.?containers.orValue([]) + variables.spec.?initContainers.orValue([]) + variables.spec.?ephemeralContainers.orValue([])`},
		},
	}
	write := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	for _, kind := range podTemplateKinds {
		f.rules = append(f.rules, rule{groups: []string{kind.group}, versions: []string{"v1"}, resources: []string{kind.resource}, operations: write})
	}
	f.rules = append(f.rules, rule{groups: []string{""}, versions: []string{"v1"}, resources: []string{"pods/ephemeralcontainers"},
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update}})
	for _, c := range podChecks() {
		c.allowed = "variables.unchanged || " + c.allowed
		f.checks = append(f.checks, c)
	}
	return f
}

// runsSame is true when two pod specs differ at most in scheduling and in the amounts of their containers' resources;
// resource claims count, because they give devices.
func runsSame(spec, old string) string {
	apart := celLiteral(append(append([]string(nil), schedulingFields...), containerLists...))
	pod := func(spec string) string { return spec + ".transformMap(k, v, !(k in " + apart + "), v)" }
	conjuncts := []string{pod(spec) + " == " + pod(old)}
	for _, list := range containerLists {
		containers := func(spec string) string {
			return spec + ".?" + list + `.orValue([]).map(c, [dyn(c.transformMap(k, v, k != "resources", v)), dyn(c.?resources.?claims.orValue([]))])`
		}
		conjuncts = append(conjuncts, containers(spec)+" == "+containers(old))
	}
	return strings.Join(conjuncts, " && ")
}

func podChecks() []check {
	escalates := func(rule, next, allowed string) check {
		return check{allowed, refusal{reason: policy.EscalatesAuthority.String(), rule: rule, next: next}}
	}
	return []check{
		escalates("pod-privileged", "run the container without securityContext.privileged",
			`!variables.containers.exists(c, c.?securityContext.?privileged.orValue(false))`),
		escalates("pod-host-namespaces", "run the pod without hostNetwork, hostPID and hostIPC",
			`!(variables.pod.?hostNetwork.orValue(false) || variables.pod.?hostPID.orValue(false) || variables.pod.?hostIPC.orValue(false))`),
		escalates("pod-host-path", "use a PersistentVolumeClaim or an emptyDir in place of the hostPath volume",
			`!variables.pod.?volumes.orValue([]).exists(v, has(v.hostPath))`),
		escalates("pod-capabilities", "run the container without added capabilities",
			`variables.containers.all(c, c.?securityContext.?capabilities.?add.orValue([]).all(a, a in `+celLiteral(runtimeCapabilities)+`))`),
		escalates("pod-windows-host-process", "run the pod without windowsOptions.hostProcess",
			`!(variables.pod.?securityContext.?windowsOptions.?hostProcess.orValue(false) || `+
				`variables.containers.exists(c, c.?securityContext.?windowsOptions.?hostProcess.orValue(false)))`),
		// The caller's own ServiceAccount is own only in its own namespace.
		escalates("pod-foreign-identity", "leave serviceAccountName out, or name the ServiceAccount that you run as",
			`[variables.pod.?serviceAccountName.orValue(""), variables.pod.?serviceAccount.orValue("")].all(a, a in ["", "default"] || `+
				`request.userInfo.username == "system:serviceaccount:" + request.namespace + ":" + a)`),
	}
}
