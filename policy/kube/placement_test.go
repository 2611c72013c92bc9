package kube_test

import "testing"

// Proves C-2: a pod that may or wants to run beside the API server is asked about, and one that only avoids such nodes or
// fits the taints of its own pool is not.
func TestTheWayToControlPlaneNodesIsAsked(t *testing.T) {
	const security = "Security=Present"
	affinity := func(kind, key, operator string) string {
		term := `{"matchExpressions":[{"key":"` + key + `","operator":"` + operator + `"}]}`
		if kind == "required" {
			return `{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + term + `]}}}}`
		}
		return `{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":` + term + `}]}}}`
	}
	const (
		mark = "node-role.kubernetes.io/control-plane"
		old  = "node-role.kubernetes.io/master"
	)
	cases := []struct{ name, spec, want string }{
		{"a toleration of the taint", `{"tolerations":[{"key":"` + mark + `","effect":"NoSchedule"}]}`, security},
		{"its former name", `{"tolerations":[{"key":"` + old + `","operator":"Exists"}]}`, security},
		{"the taint of nodes for add-ons", `{"tolerations":[{"key":"CriticalAddonsOnly","operator":"Exists"}]}`, security},
		{"a toleration of every taint", `{"tolerations":[{"operator":"Exists"}]}`, security},
		{"a toleration of the taints of a pool", `{"tolerations":[{"key":"gpu","operator":"Exists"},{"key":"node-role.kubernetes.io/batch","value":"a"}]}`, ""},
		{"the tolerations that the API server adds", `{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]}`, ""},
		{"a selector for such nodes", `{"nodeSelector":{"` + mark + `":""}}`, security},
		{"a selector for a pool", `{"nodeSelector":{"pool":"batch"}}`, ""},
		{"an affinity to such nodes", affinity("required", mark, "Exists"), security},
		{"a preference for such nodes", affinity("preferred", old, "In"), security},
		{"an affinity that avoids such nodes", affinity("required", mark, "DoesNotExist"), ""},
		{"a preference that avoids such nodes", affinity("preferred", mark, "NotIn"), ""},
		{"an affinity to a zone", affinity("required", "topology.kubernetes.io/zone", "In"), ""},
	}
	table := make([]factCase, 0, len(cases))
	for _, c := range cases {
		table = append(table, factCase{name: c.name, what: "CREATE pods", object: `{"spec":` + c.spec + `}`, known: own, want: c.want})
	}
	runFacts(t, table)
}

// Proves C-2 for updates: what opens the way counts, and what had it before only when it runs something else.
func TestUpdatesThatLeadToControlPlaneNodes(t *testing.T) {
	const (
		security   = "Security=Present"
		toleration = `"tolerations":[{"operator":"Exists"}]`
		selector   = `"nodeSelector":{"node-role.kubernetes.io/control-plane":""}`
		affinity   = `"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"preference":{"matchExpressions":[{"key":"node-role.kubernetes.io/etcd","operator":"Exists"}]}}]}}`
	)
	deployment := func(fields, image string) string {
		return `{"spec":{"template":{"spec":{` + fields + `,"containers":[{"image":"` + image + `"}]}}}}`
	}
	none := `"hostname":"a"`
	var table []factCase
	for name, way := range map[string]string{"a toleration": toleration, "a selector": selector, "an affinity": affinity} {
		way = none + "," + way
		table = append(table,
			factCase{name: name + " is given", what: "UPDATE apps/deployments", known: own, object: deployment(way, "a"), old: deployment(none, "a"), want: security},
			factCase{name: name + " stays", what: "UPDATE apps/deployments", known: own, object: deployment(way, "a"), old: deployment(way, "a")},
			factCase{name: name + " is taken away", what: "UPDATE apps/deployments", known: own, object: deployment(none, "a"), old: deployment(way, "a")},
			factCase{name: "something else runs under " + name, what: "UPDATE apps/deployments", known: own, object: deployment(way, "b"), old: deployment(way, "a"), want: security},
		)
	}
	runFacts(t, table)
}

// Proves C-2 for updates: what a container adds is asked once, also when the workload is somebody else's.
func TestUpdatesThatAddCapabilities(t *testing.T) {
	deployment := func(name, capability, image string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"` + name + `","image":"` + image + `","securityContext":{"capabilities":{"drop":["ALL"],"add":["` + capability + `"]}}}]}}}}`
	}
	runFacts(t, []factCase{
		{name: "one of the default set is added", what: "UPDATE apps/deployments", known: own, object: deployment("a", "SETUID", "a"), old: deployment("a", "CHOWN", "a"), want: "Security=Present"},
		{name: "another container gets it", what: "UPDATE apps/deployments", known: own, object: deployment("b", "CHOWN", "a"), old: deployment("a", "CHOWN", "a"), want: "Security=Present"},
		{name: "an own one had it before", what: "UPDATE apps/deployments", known: own, object: deployment("a", "CHOWN", "b"), old: deployment("a", "CHOWN", "a")},
		{name: "a foreign one had it before", what: "UPDATE apps/deployments", known: foreign, object: deployment("a", "CHOWN", "b"), old: deployment("a", "CHOWN", "a")},
		{name: "what no runtime gives counts whenever the program changes", what: "UPDATE apps/deployments", known: own, object: deployment("a", "SYS_ADMIN", "b"), old: deployment("a", "SYS_ADMIN", "a"), want: "EscalatesAuthority=Present"},
	})
}
