package kube_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// podKinds are the built-in kinds that hold a pod spec, and where.
var podKinds = map[string]string{
	"pods":                   `{"spec":%s}`,
	"podtemplates":           `{"template":{"spec":%s}}`,
	"replicationcontrollers": `{"spec":{"template":{"spec":%s}}}`,
	"apps/deployments":       `{"spec":{"template":{"spec":%s}}}`,
	"apps/replicasets":       `{"spec":{"template":{"spec":%s}}}`,
	"apps/statefulsets":      `{"spec":{"template":{"spec":%s}}}`,
	"apps/daemonsets":        `{"spec":{"template":{"spec":%s}}}`,
	"batch/jobs":             `{"spec":{"template":{"spec":%s}}}`,
	"batch/cronjobs":         `{"spec":{"jobTemplate":{"spec":{"template":{"spec":%s}}}}}`,
}

// Proves C-2 for every built-in kind that holds a pod spec.
func TestEveryPodKindIsJudged(t *testing.T) {
	for kind, form := range podKinds {
		t.Run("a privileged container in "+kind+" escalates", func(t *testing.T) {
			privileged := fmt.Sprintf(form, `{"containers":[{"securityContext":{"privileged":true}}]}`)
			plain := fmt.Sprintf(form, `{"containers":[{}]}`)
			want := []string{"EscalatesAuthority=Present"}
			if diff := cmp.Diff(want, factsOf(t, request(t, "CREATE "+kind, privileged, ""), own())); diff != "" {
				t.Errorf("create: %s", diff)
			}
			if diff := cmp.Diff(want, factsOf(t, request(t, "UPDATE "+kind, privileged, plain), own())); diff != "" {
				t.Errorf("update: %s", diff)
			}
			if diff := cmp.Diff([]string{}, factsOf(t, request(t, "UPDATE "+kind, privileged, privileged), own())); diff != "" {
				t.Errorf("update that leaves it alone: %s", diff)
			}
		})
	}
}

// Proves C-2: everything that the baseline profile of the Pod Security Standards refuses is at least ASK.
func TestPodConfinement(t *testing.T) {
	const (
		escalates = "EscalatesAuthority=Present"
		security  = "Security=Present"
	)
	security1 := func(context string) string {
		return `{"containers":[{"securityContext":` + context + `}]}`
	}
	cases := []struct{ name, spec, want string }{
		{"an ordinary pod is nothing special", `{"containers":[{"image":"nginx","ports":[{"containerPort":80}]}]}`, ""},
		{"its own ServiceAccount is free", `{"serviceAccountName":"agent","serviceAccount":"agent"}`, ""},
		{"the default ServiceAccount is free", `{"serviceAccountName":"default"}`, ""},
		{"another ServiceAccount escalates", `{"serviceAccountName":"admin"}`, escalates},
		{"another ServiceAccount in the deprecated field escalates", `{"serviceAccount":"admin"}`, escalates},
		{"hostNetwork escalates", `{"hostNetwork":true}`, escalates},
		{"hostPID escalates", `{"hostPID":true}`, escalates},
		{"hostIPC escalates", `{"hostIPC":true}`, escalates},
		{"hostPath escalates", `{"volumes":[{"name":"a","hostPath":{"path":"/"}}]}`, escalates},
		{"an empty hostPath escalates", `{"volumes":[{"name":"a","hostPath":{}}]}`, escalates},
		{"a privileged init container escalates", `{"initContainers":[{"securityContext":{"privileged":true}}]}`, escalates},
		{"the capability to take a low port is free", security1(`{"capabilities":{"add":["NET_BIND_SERVICE"],"drop":["ALL"]}}`), ""},
		{"another default capability is security", security1(`{"capabilities":{"add":["CHOWN","NET_BIND_SERVICE"]}}`), security},
		{"also of an init container", `{"initContainers":[{"securityContext":{"capabilities":{"add":["SYS_CHROOT"]}}}]}`, security},
		{"another capability escalates", security1(`{"capabilities":{"add":["NET_ADMIN"]}}`), escalates},
		{"all capabilities escalate", security1(`{"capabilities":{"add":["ALL"]}}`), escalates},
		{"a dropped capability is free", security1(`{"capabilities":{"drop":["ALL"]}}`), ""},
		{"a Windows process of the host escalates", `{"securityContext":{"windowsOptions":{"hostProcess":true}}}`, escalates},
		{"one container of it too", security1(`{"windowsOptions":{"hostProcess":true}}`), escalates},
		{"a hostPort is external", `{"containers":[{"ports":[{"hostPort":80}]}]}`, "External=Present " + security},
		{"an unmasked /proc is security", security1(`{"procMount":"Unmasked"}`), security},
		{"in a user namespace it is free", `{"hostUsers":false,"containers":[{"securityContext":{"procMount":"Unmasked"}}]}`, ""},
		{"without one it is not", `{"hostUsers":true,"containers":[{"securityContext":{"procMount":"Unmasked"}}]}`, security},
		{"an unsafe sysctl is security", `{"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}}`, security},
		{"a safe sysctl is free", `{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_syncookies","value":"1"}]}}`, ""},
		{"seccomp Unconfined is security", `{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}`, security},
		{"AppArmor Unconfined is security", security1(`{"appArmorProfile":{"type":"Unconfined"}}`), security},
		{"a local profile is free", security1(`{"seccompProfile":{"type":"Localhost"},"appArmorProfile":{"type":"RuntimeDefault"}}`), ""},
		{"an SELinux role is security", `{"securityContext":{"seLinuxOptions":{"role":"sysadm_r"}}}`, security},
		{"an SELinux user is security", security1(`{"seLinuxOptions":{"user":"root"}}`), security},
		{"an unconfined SELinux type is security", security1(`{"seLinuxOptions":{"type":"spc_t"}}`), security},
		{"a container SELinux type is free", security1(`{"seLinuxOptions":{"type":"container_t","level":"s0:c1"}}`), ""},
		{"a probe of another host is security", `{"containers":[{"livenessProbe":{"httpGet":{"host":"10.0.0.1"}}}]}`, security},
		{"a hook to another host is security", `{"containers":[{"lifecycle":{"preStop":{"tcpSocket":{"host":"10.0.0.1"}}}}]}`, security},
		{"a Secret in a variable is credentials", `{"containers":[{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"db"}}}]}]}`, "Credentials=Present"},
		{"a Secret as environment is credentials", `{"initContainers":[{"envFrom":[{"secretRef":{"name":"db"}}]}]}`, "Credentials=Present"},
		{"a Secret volume is credentials", `{"volumes":[{"secret":{"secretName":"db"}}]}`, "Credentials=Present"},
		{"a projected Secret is credentials", `{"volumes":[{"projected":{"sources":[{"secret":{"name":"db"}}]}}]}`, "Credentials=Present"},
		{"a Secret of a CSI driver is credentials", `{"volumes":[{"csi":{"nodePublishSecretRef":{"name":"db"}}}]}`, "Credentials=Present " + security},
		{"a Secret of an old volume kind is credentials", `{"volumes":[{"azureFile":{"secretName":"db"}}]}`, "Credentials=Present " + security},
		{"an imagePullSecret is free", `{"imagePullSecrets":[{"name":"registry"}]}`, ""},
		{"a node of the agent's choice is security", `{"nodeName":"node-1"}`, security},
		{"a runtime class is security", `{"runtimeClassName":"host-network"}`, security},
		{"a priority class of the system is security", `{"priorityClassName":"system-node-critical"}`, security},
		{"another priority class is disclosed", `{"priorityClassName":"batch"}`, "MaterialAssumption=Present"},
		{"an inline CSI volume is security", `{"volumes":[{"name":"a","csi":{"driver":"disk.example"}}]}`, security},
		{"a server's export is security", `{"volumes":[{"name":"a","nfs":{"server":"10.0.0.1","path":"/"}}]}`, security},
		{"volumes from the cluster are free", `{"volumes":[{"name":"a","emptyDir":{}},{"name":"b","configMap":{"name":"a"}},{"name":"c","downwardAPI":{}},{"name":"d","image":{}},{"name":"e","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]}`, ""},
		{"a volume from a snapshot is security", `{"volumes":[{"name":"a","ephemeral":{"volumeClaimTemplate":{"spec":{"dataSource":{"kind":"VolumeSnapshot","name":"db"}}}}}]}`, security},
		{"a volume from another claim is security", `{"volumes":[{"name":"a","ephemeral":{"volumeClaimTemplate":{"spec":{"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"db"}}}}}]}`, security},
		{"a token for another audience is free", `{"volumes":[{"projected":{"sources":[{"serviceAccountToken":{"audience":"vault","path":"t"}}]}}]}`, ""},
	}
	table := make([]factCase, 0, len(cases))
	for _, c := range cases {
		table = append(table, factCase{name: c.name, what: "CREATE pods", object: `{"spec":` + c.spec + `}`, known: own, want: c.want})
	}
	runFacts(t, table)
}

func TestPodAnnotations(t *testing.T) {
	pod := func(annotation, value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{}}`, annotation, value)
	}
	runFacts(t, []factCase{
		{name: "AppArmor off by annotation is security", what: "CREATE pods", known: own, object: pod("container.apparmor.security.beta.kubernetes.io/web", "unconfined"), want: "Security=Present"},
		{name: "the runtime's AppArmor profile is free", what: "CREATE pods", known: own, object: pod("container.apparmor.security.beta.kubernetes.io/web", "runtime/default")},
		{name: "seccomp off by annotation is security", what: "CREATE pods", known: own, object: pod("seccomp.security.alpha.kubernetes.io/pod", "unconfined"), want: "Security=Present"},
		{
			name: "in a template that runs the same it is still seen", what: "UPDATE apps/deployments", known: own,
			object: `{"spec":{"template":` + pod("container.apparmor.security.beta.kubernetes.io/web", "unconfined") + `}}`,
			old:    `{"spec":{"template":{"spec":{}}}}`, want: "Security=Present",
		},
	})
}

// Proves C-2 for updates of templates.
func TestTemplateUpdates(t *testing.T) {
	deployment := func(spec string) string { return `{"spec":{"template":{"spec":` + spec + `}}}` }
	elsewhere := func(r *kube.Request) { r.ServiceAccount.Namespace = "search" }
	runFacts(t, []factCase{
		{
			name: "resources of a workload under another identity are free", what: "UPDATE apps/deployments",
			object: deployment(`{"serviceAccountName":"web","containers":[{"image":"a","resources":{"limits":{"cpu":"2"}}}],"nodeSelector":{"pool":"b"}}`),
			old:    deployment(`{"serviceAccountName":"web","containers":[{"image":"a"}]}`),
		},
		{
			name: "its image is code under that identity", what: "UPDATE apps/deployments",
			object: deployment(`{"serviceAccountName":"web","containers":[{"image":"b"}]}`),
			old:    deployment(`{"serviceAccountName":"web","containers":[{"image":"a"}]}`), want: "EscalatesAuthority=Present",
		},
		{
			name: "a device claim is not only an amount", what: "UPDATE apps/deployments",
			object: deployment(`{"hostPID":true,"containers":[{"resources":{"claims":[{"name":"gpu"}]}}]}`),
			old:    deployment(`{"hostPID":true,"containers":[{}]}`), want: "EscalatesAuthority=Present",
		},
		{
			name: "a Secret that an own object used before is no news", what: "UPDATE apps/deployments", known: own,
			object: deployment(`{"containers":[{"image":"b","envFrom":[{"secretRef":{"name":"db"}}]}]}`),
			old:    deployment(`{"containers":[{"image":"a"}],"volumes":[{"secret":{"secretName":"db"}}]}`),
		},
		{
			name: "a changed image of a foreign object reads every Secret that it used before", what: "UPDATE apps/deployments",
			object: deployment(`{"containers":[{"image":"b","envFrom":[{"secretRef":{"name":"db"}}]}]}`),
			old:    deployment(`{"containers":[{"image":"a","envFrom":[{"secretRef":{"name":"db"}}]}]}`), want: "Credentials=Present",
		},
		{
			name: "resources of a foreign object that uses a Secret are free", what: "UPDATE apps/deployments",
			object: deployment(`{"containers":[{"image":"a","envFrom":[{"secretRef":{"name":"db"}}],"resources":{"limits":{"cpu":"2"}}}]}`),
			old:    deployment(`{"containers":[{"image":"a","envFrom":[{"secretRef":{"name":"db"}}]}]}`),
		},
		{
			name: "a Secret that it did not use is", what: "UPDATE apps/deployments", known: own,
			object: deployment(`{"containers":[{"envFrom":[{"secretRef":{"name":"db"}},{"secretRef":{"name":"root"}}]}]}`),
			old:    deployment(`{"containers":[{"envFrom":[{"secretRef":{"name":"db"}}]}]}`), want: "Credentials=Present",
		},
		{
			name: "the same name in another namespace is another identity", what: "CREATE apps/deployments", known: own,
			object: deployment(`{"serviceAccountName":"agent"}`), change: elsewhere, want: "EscalatesAuthority=Present",
		},
		{
			name: "an ephemeral container asks", what: "UPDATE pods/ephemeralcontainers",
			object: `{"spec":{"serviceAccountName":"web","ephemeralContainers":[{"name":"d","image":"busybox"}]}}`,
			old:    `{"spec":{"serviceAccountName":"web"}}`, want: "Security=Present",
		},
		{
			name: "a privileged one escalates", what: "UPDATE pods/ephemeralcontainers", known: own,
			object: `{"spec":{"ephemeralContainers":[{"name":"d","securityContext":{"privileged":true}}]}}`,
			old:    `{"spec":{}}`, want: "Security=Present EscalatesAuthority=Present",
		},
		{
			name: "one that reads a Secret asks for that too", what: "UPDATE pods/ephemeralcontainers", known: own,
			object: `{"spec":{"ephemeralContainers":[{"name":"d","envFrom":[{"secretRef":{"name":"db"}}]}]}}`,
			old:    `{"spec":{}}`, want: "Credentials=Present Security=Present",
		},
		{
			name: "a resize of a privileged pod is free", what: "UPDATE pods/resize",
			object: `{"spec":{"hostPID":true,"containers":[{"resources":{"requests":{"cpu":"1"}}}]}}`,
			old:    `{"spec":{"hostPID":true,"containers":[{"resources":{"requests":{"cpu":"2"}}}]}}`,
		},
	})
}

func TestPodTemplatesForRules(t *testing.T) {
	op, err := kube.Operation(request(t, "CREATE apps/deployments", `{"spec":{"template":{"spec":{
		"serviceAccountName":"agent","initContainers":[{"image":"init:1"}],"containers":[{"image":"web:1"},{"image":"proxy:1"}],
		"volumes":[{"image":{"reference":"models:1"}}]}}}}`, ""), own())
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.PodTemplate{{ServiceAccountName: "agent", Images: []string{"init:1", "web:1", "proxy:1", "models:1"}}}
	if diff := cmp.Diff(want, op.Kubernetes.PodTemplates); diff != "" {
		t.Error(diff)
	}
}

// Proves C-4: the reasons that messages show are our own words, whatever the request holds.
func TestReasonsHoldNoTextOfTheRequest(t *testing.T) {
	req := request(t, "CREATE pods", `{"spec":{"serviceAccountName":"hunter2","hostPID":true,"volumes":[{"name":"hunter2","hostPath":{"path":"/hunter2"}}],
		"securityContext":{"sysctls":[{"name":"hunter2"}],"seccompProfile":{"type":"hunter2"}},
		"containers":[{"envFrom":[{"secretRef":{"name":"hunter2"}}],"securityContext":{"capabilities":{"add":["hunter2"]}}}]}}`, "")
	op, err := kube.Operation(req, own())
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range policy.AllFacts() {
		if strings.Contains(op.Facts[fact].Why, "hunter2") {
			t.Errorf("%s: %s", fact, op.Facts[fact].Why)
		}
	}
}
