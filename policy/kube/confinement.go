package kube

import (
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// The lists below are those of the baseline profile of the Pod Security Standards, Kubernetes 1.37.
var (
	defaultCapabilities = []string{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
		"SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
	}
	safeSysctls = []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
		"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
	}
	confinedSELinuxTypes = []string{
		"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t",
	}
	confinedProfiles = []string{"", "RuntimeDefault", "Localhost"}
)

// unaskedCapability is the only one that the restricted profile allows to add.
const unaskedCapability = "NET_BIND_SERVICE"

// confinementAnnotations are the older spelling of seccomp and AppArmor profiles.
var confinementAnnotations = []string{
	"container.apparmor.security.beta.kubernetes.io/",
	"container.seccomp.security.alpha.kubernetes.io/",
	"seccomp.security.alpha.kubernetes.io/",
}

// judgePodConfinement judges what stands at the pod itself.
func (j *judge) judgePodConfinement(t template) {
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if t.spec.flag(field) {
			j.present(policy.EscalatesAuthority, "the pod shares a namespace of the node: "+field)
		}
	}
	for volume := range t.spec.objects("volumes") {
		j.judgeVolume(volume)
	}
	security := t.spec.object("securityContext")
	for sysctl := range security.objects("sysctls") {
		if !slices.Contains(safeSysctls, sysctl.text("name")) {
			j.present(policy.Security, "the pod sets a sysctl that is not known to be safe")
		}
	}
	j.judgeSecurityContext(security)
	annotations := t.metadata.object("annotations")
	for key, value := range annotations.fields {
		if isConfinementKey(key) && !confinedAnnotation(value) {
			j.present(policy.Security, "the pod turns off seccomp or AppArmor by annotation")
		}
	}
}

func isConfinementKey(key string) bool {
	return slices.ContainsFunc(confinementAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func confinedAnnotation(annotation any) bool {
	value, ok := annotation.(string)
	return ok && (value == "" || value == "runtime/default" || value == "docker/default" || strings.HasPrefix(value, "localhost/"))
}

// judgeContainer judges one container of any list.
func (j *judge) judgeContainer(container, spec object) {
	security := container.object("securityContext")
	if security.flag("privileged") {
		j.present(policy.EscalatesAuthority, "a container is privileged")
	}
	for _, capability := range security.object("capabilities").strings("add") {
		if !slices.Contains(defaultCapabilities, capability) {
			j.present(policy.EscalatesAuthority, "a container adds a capability beyond the runtime's default")
		}
	}
	if mount := security.text("procMount"); mount != "" && mount != "Default" && !inUserNamespace(spec) {
		j.present(policy.Security, "a container sees all of /proc: procMount")
	}
	for port := range container.objects("ports") {
		if n, _ := port.number("hostPort"); n != 0 {
			j.present(policy.Security, "a container takes a port of the node: hostPort")
			j.present(policy.External, "a port of the node is reachable from outside the cluster: hostPort")
		}
	}
	j.judgeSecurityContext(security)
	j.judgeHandlers(container)
}

// judgeCapabilities finds the capabilities of the default set that a container of this name did not add before. Runtimes
// differ in that set, so adding one of it can be an addition.
func (j *judge) judgeCapabilities(now, was object) {
	before := addedCapabilities(was)
	for added := range addedCapabilities(now) {
		if added.capability != unaskedCapability && slices.Contains(defaultCapabilities, added.capability) && !before[added] {
			j.present(policy.Security, "a container adds a capability that not every runtime gives by default")
		}
	}
}

type addedCapability struct{ container, capability string }

func addedCapabilities(spec object) map[addedCapability]bool {
	var added map[addedCapability]bool // most pods add none, so it is made with the first
	for _, list := range containerLists {
		for container := range spec.objects(list) {
			for _, capability := range container.object("securityContext").object("capabilities").strings("add") {
				if added == nil {
					added = map[addedCapability]bool{}
				}
				added[addedCapability{container.text("name"), capability}] = true
			}
		}
	}
	return added
}

// inUserNamespace: root inside is nobody outside, so the baseline profile allows any procMount then.
func inUserNamespace(spec object) bool {
	return spec.fields["hostUsers"] != nil && !spec.flag("hostUsers")
}

// judgeSecurityContext judges what pods and containers spell alike.
func (j *judge) judgeSecurityContext(security object) {
	if security.object("windowsOptions").flag("hostProcess") {
		j.present(policy.EscalatesAuthority, "the pod runs as a process of the node: windowsOptions.hostProcess")
	}
	for _, field := range []string{"seccompProfile", "appArmorProfile"} {
		if !slices.Contains(confinedProfiles, security.object(field).text("type")) {
			j.present(policy.Security, "the pod is not confined: "+field)
		}
	}
	selinux := security.object("seLinuxOptions")
	if selinux.text("user") != "" || selinux.text("role") != "" ||
		!slices.Contains(confinedSELinuxTypes, selinux.text("type")) {
		j.present(policy.Security, "the pod chooses its own SELinux user, role or type")
	}
}

// judgeHandlers finds probes and lifecycle handlers that make the kubelet call another host.
func (j *judge) judgeHandlers(container object) {
	lifecycle := container.object("lifecycle")
	handlers := []object{
		container.object("livenessProbe"), container.object("readinessProbe"), container.object("startupProbe"),
		lifecycle.object("postStart"), lifecycle.object("preStop"),
	}
	for _, handler := range handlers {
		if handler.fields == nil {
			continue
		}
		if handler.object("httpGet").text("host") != "" || handler.object("tcpSocket").text("host") != "" {
			j.present(policy.Security, "a probe or lifecycle handler makes the node call another host")
		}
	}
}
