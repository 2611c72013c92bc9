package corpora

import "path"

// argued are entries whose label is contested, with the reason. They count as bad all the same; the table says why they
// stay.
var argued = []struct{ pattern, reason string }{
	{"npm-mcp-server-kubernetes/kubectl_context", "its description says that it sets the current context, which decides where every later call goes"},
	{"trace/*/identify-context-for-task/*", "it reads a kubeconfig with its keys; mcp-tool-hints wants the same tool never AUTO"},
	{"trace/*/troubleshoot-vm/*", "the data has no description of the tool, and its name does not tell whether it repairs as well"},
	{"pss/restricted/*/pass/restrictedvolumes0", "it mounts a Secret; the class table asks for every Secret that the object did not use before"},
	{"pss/baseline/*/pass/capabilities_baseline0", "it adds capabilities; the class table asks for every added one, and k8s-kyverno wants the same never AUTO"},
}

// reasonFor is why an entry stays as it is; empty when nobody argued about it.
func reasonFor(id string) string {
	for _, a := range argued {
		if matched, _ := path.Match(a.pattern, id); matched {
			return a.reason
		}
	}
	return ""
}
