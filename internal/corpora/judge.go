package corpora

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
	"stepbeyond.dev/stepbeyond/policy/kube"
	"stepbeyond.dev/stepbeyond/policy/tool"
)

// judge decides under the newest baseline alone, for a session that may do everything in the namespace it is asked about.
type judge struct {
	engine *policy.Engine
	// admitted replaces the engine for manifests; nil = they are judged offline. Class 0 tells that the API server refuses
	// the write by itself.
	admitted func(write) policy.Class
}

// through names a metric after where its manifests were judged.
func (j *judge) through(metric string) string {
	if j.admitted != nil {
		return metric + ", through the real webhook"
	}
	return metric + ", offline"
}

const home = "agents"

func newJudge() (*judge, error) {
	embedded, err := baseline.Load(baseline.Latest)
	if err != nil {
		return nil, err
	}
	engine, problems := policy.Compile(policy.Set{
		Baseline: embedded, Namespaces: map[string]policy.Namespace{home: {Profile: "standard"}},
		Profiles: map[string]policy.Policy{"standard": {ID: policy.PolicyID{Kind: policy.KindProfile, Name: "standard"}}},
	})
	if len(problems) > 0 {
		return nil, fmt.Errorf("baseline %s: %w", baseline.Latest, problems[0])
	}
	return &judge{engine: engine}, nil
}

func (j *judge) class(op policy.Operation) policy.Class {
	now := time.Unix(0, 0)
	return j.engine.Decide(op, policy.SessionView{
		State: policy.SessionActive, Namespace: home, Name: "agent", UID: "uid", Epoch: 1, Username: "agent", Deadline: now.Add(time.Hour),
		Authority: policy.Authority{
			Stages: []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish},
			Capabilities: []policy.Capability{
				policy.CapabilityReadContext, policy.CapabilityReadProject, policy.CapabilityExecuteLocal, policy.CapabilityPublishExternal,
			},
			Namespaces: []string{op.Target.Namespace},
		},
	}, now).Class
}

func (j *judge) tool(call tool.Call) policy.Class { return j.class(tool.Operation(call, tool.Known{})) }

// clusterScoped are the kinds of the data that have no namespace.
var clusterScoped = map[string]bool{
	"Namespace": true, "Node": true, "PersistentVolume": true, "ClusterRole": true, "ClusterRoleBinding": true, "StorageClass": true,
	"PriorityClass": true, "CustomResourceDefinition": true, "APIService": true, "ValidatingWebhookConfiguration": true,
	"MutatingWebhookConfiguration": true, "ClusterPolicy": true, "PodSecurityPolicy": true, "CertificateSigningRequest": true,
	"IngressClass": true, "RuntimeClass": true, "CSIDriver": true,
}

// write is what an agent sends about one object. Old is nil for a creation.
type write struct {
	object, old map[string]any
	origin      policy.Origin
	// claims that the run made itself, by namespace and name.
	claims map[string]bool
}

// manifest is the class of a write; a request that cannot be read is refused, which counts as FORBIDDEN.
func (j *judge) manifest(w write) policy.Class {
	if j.admitted != nil {
		return j.admitted(w)
	}
	request := requestOf(w)
	known := kube.Known{Origin: w.origin, SessionNamespaces: []string{request.Namespace}}
	for _, claim := range kube.ClaimsOf(request, w.origin) {
		if claim.Generated || w.claims[request.Namespace+"/"+claim.Name] {
			known.OwnClaims = append(known.OwnClaims, claim.Name)
		}
	}
	op, err := kube.Operation(request, known)
	if err != nil {
		return policy.ClassForbidden
	}
	return j.class(op)
}

func requestOf(w write) kube.Request {
	apiVersion, _ := w.object["apiVersion"].(string)
	kind, _ := w.object["kind"].(string)
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	request := kube.Request{
		Operation: "CREATE", Group: group, Version: version, Kind: kind, Resource: plural.Resource, Object: w.object,
		ServiceAccount: kube.ServiceAccount{Namespace: home, Name: "agent"},
	}
	if w.old != nil {
		request.Operation, request.OldObject = "UPDATE", w.old
	}
	metadata, _ := w.object["metadata"].(map[string]any)
	request.Name, _ = metadata["name"].(string)
	switch request.Namespace, _ = metadata["namespace"].(string); {
	case kind == "Namespace":
		request.Namespace = request.Name // as admission does
	case clusterScoped[kind]:
		request.Namespace = ""
	case request.Namespace == "":
		request.Namespace = home
	}
	request.ServiceAccount.Namespace = request.Namespace
	return request
}
