package coverage

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// thirdParty are kinds that other controllers act on, or that the baseline names and Kubernetes does not bring.
var thirdParty = []struct {
	schema.GroupVersionKind
	plural       string
	cluster      bool
	subresources []string
}{
	{schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}, "applications", false, nil},
	{schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, "rollouts", false, []string{"status", "scale"}},
	{schema.GroupVersionKind{Group: "database.acme.example", Version: "v1alpha1", Kind: "PostgreSQLInstance"}, "postgresqlinstances", false, []string{"status"}},
	{schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}, "httproutes", false, []string{"status"}},
	{schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}, "helmreleases", false, []string{"status"}},
	{schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}, "kustomizations", false, []string{"status"}},
	{schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}, "clusterpolicies", true, []string{"status"}},
	{schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}, "volumesnapshots", false, []string{"status"}},
	{schema.GroupVersionKind{Group: "tekton.dev", Version: "v1", Kind: "PipelineRun"}, "pipelineruns", false, []string{"status"}},
	{schema.GroupVersionKind{Group: "tekton.dev", Version: "v1", Kind: "TaskRun"}, "taskruns", false, []string{"status"}},
	{schema.GroupVersionKind{Group: "templates.gatekeeper.sh", Version: "v1", Kind: "ConstraintTemplate"}, "constrainttemplates", true, []string{"status"}},
}

// ThirdParty are definitions of kinds that the matrix shows beside Kubernetes' own and Step Beyond's: with the names and
// scopes of the real ones, and any content.
func ThirdParty() []*unstructured.Unstructured {
	var definitions []*unstructured.Unstructured
	for _, kind := range thirdParty {
		scope := "Namespaced"
		if kind.cluster {
			scope = "Cluster"
		}
		version := map[string]any{
			"name": kind.Version, "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
		if len(kind.subresources) > 0 {
			version["subresources"] = subresources(kind.subresources)
		}
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"spec": map[string]any{
				"group": kind.Group, "scope": scope, "versions": []any{version},
				"names": map[string]any{"kind": kind.Kind, "plural": kind.plural, "singular": strings.ToLower(kind.Kind), "listKind": kind.Kind + "List"},
			},
		}}
		definition.SetName(kind.plural + "." + kind.Group)
		if strings.HasSuffix(kind.Group, ".k8s.io") {
			definition.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, for tests"})
		}
		definitions = append(definitions, definition)
	}
	return definitions
}

func subresources(names []string) map[string]any {
	served := map[string]any{}
	for _, name := range names {
		served[name] = map[string]any{}
		if name == "scale" {
			served[name] = map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
		}
	}
	return served
}
