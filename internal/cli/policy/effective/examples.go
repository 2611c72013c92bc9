package effective

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

//go:embed examples.yaml
var examplesFile []byte

// example is one thing that agents do.
type example struct {
	Name       string      `json:"name"`
	Operations []operation `json:"operations"`
}

// Scopes of an example beside the namespace that is asked about.
const (
	scopeCluster        = "Cluster"
	scopeOtherNamespace = "OtherNamespace"
	// elsewhere is a name that no namespace can have, so that no policy of a real one is meant.
	elsewhere = "(another)"
)

type operation struct {
	Verb     policy.Verb    `json:"verb"`
	Resource string         `json:"resource"`
	Origin   policy.Origin  `json:"origin"`
	Scope    string         `json:"scope"`
	Object   map[string]any `json:"object"`
	Old      map[string]any `json:"old"`
}

func examples() ([]example, error) {
	var found []example
	source, err := yaml.YAMLToJSON(examplesFile)
	if err != nil {
		return nil, fmt.Errorf("read the examples: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(source, &found) // integers stay whole, and a field that does not exist is an error
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("read the examples: %w", err)
	}
	return found, nil
}

// request is the operation as admission would show it.
func (o *operation) request(namespace, serviceAccount string) (kube.Request, error) {
	shown := o.Object
	if shown == nil {
		shown = o.Old
	}
	apiVersion, _ := shown["apiVersion"].(string)
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return kube.Request{}, fmt.Errorf("apiVersion: %w", err)
	}
	request := kube.Request{
		Operation: strings.ToUpper(string(o.Verb)), Group: version.Group, Version: version.Version, Namespace: namespace, Name: "example",
		ServiceAccount: kube.ServiceAccount{Namespace: namespace, Name: serviceAccount},
	}
	request.Kind, _ = shown["kind"].(string)
	request.Resource, request.Subresource, _ = strings.Cut(o.Resource, "/")
	if request.Subresource != "" {
		request.Group, request.Version = "", "v1" // the options have a group of their own
	}
	switch o.Scope {
	case scopeCluster:
		request.Namespace = ""
	case scopeOtherNamespace:
		request.Namespace = elsewhere
	}
	request.Object, request.OldObject = placed(o.Object, request.Namespace), placed(o.Old, request.Namespace)
	return request, nil
}

// placed is a copy of an object in a namespace. Options of a connection have no metadata and get none.
func placed(object map[string]any, namespace string) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata, object = maps.Clone(metadata), maps.Clone(object)
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	metadata["uid"] = "example"
	object["metadata"] = metadata
	return object
}

// Decided is what the engine says of one example: of several operations the one with the largest class.
type Decided struct {
	Name    string         `json:"name"`
	Class   string         `json:"class"`
	Verdict policy.Verdict `json:"verdict"`
	Reason  policy.Reason  `json:"reason"`
	// Operation that was decided, as verb, resource and name.
	Operation string `json:"operation"`
	// Because are the reasons for the class: facts and rules.
	Because []string `json:"because,omitempty"`
	// Approvers that an ASK needs.
	Approvers []Approvers `json:"approvers,omitempty"`

	class     policy.Class
	approvals policy.Approvals
}

// Approvers is one requirement.
type Approvers struct {
	Requirement string   `json:"requirement"`
	Required    int32    `json:"required"`
	Groups      []string `json:"groups,omitempty"`
}

// decide asks the engine about every example, for a new session of the template.
func decide(snapshot *policystore.Snapshot, namespace string, template *v1alpha1.SessionTemplate, now time.Time) ([]Decided, error) {
	list, err := examples()
	if err != nil {
		return nil, err
	}
	view := policy.SessionView{
		State: policy.SessionActive, Namespace: namespace, Name: "example", UID: "example", Epoch: 1,
		Username:  "system:serviceaccount:" + namespace + ":" + template.ServiceAccountName,
		Authority: policystore.AuthorityOf(&template.Authority, namespace),
	}
	var all []Decided
	for i := range list {
		var worst Decided
		for j := range list[i].Operations {
			o := &list[i].Operations[j]
			request, err := o.request(namespace, template.ServiceAccountName)
			if err != nil {
				return nil, fmt.Errorf("read example %q: %w", list[i].Name, err)
			}
			op, err := kube.Operation(request, kube.Known{Origin: o.Origin, SessionNamespaces: view.Authority.Namespaces})
			if err != nil {
				return nil, fmt.Errorf("read example %q: %w", list[i].Name, err)
			}
			if d := snapshot.Engine.Decide(op, view, now); d.Class > worst.class {
				worst = decided(list[i].Name, &op, &d)
			}
		}
		all = append(all, worst)
	}
	return all, nil
}

func decided(name string, op *policy.Operation, d *policy.Decision) Decided {
	made := Decided{
		Name: name, Class: d.Class.String(), Verdict: d.Verdict, Reason: d.Reason, class: d.Class, approvals: d.Approvals,
		Operation: fmt.Sprintf("%s %s %s", op.Verb, op.Target.ResourcePath(), op.Target.Path()),
	}
	for i := range d.Details {
		detail := &d.Details[i]
		text := detail.Code
		if detail.Fact != "" {
			text += " " + detail.Presence.String()
		}
		if detail.Rule != "" {
			text += " (" + detail.Rule + ")"
		}
		made.Because = append(made.Because, text)
	}
	for _, r := range d.Approvals.Requirements {
		made.Approvers = append(made.Approvers, Approvers{Requirement: r.Name, Required: r.Required, Groups: r.ApproverGroups})
	}
	return made
}
