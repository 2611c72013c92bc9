package policytest

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// prepared is a case's operation by one session, ready to be decided.
type prepared struct {
	request   kube.Request
	operation policy.Operation
	exact     kube.Exact
	arguments map[string]any // of a tool call
}

// testKey is no secret: digests of tests never leave the process.
var testKey = kube.Key([]byte("the digest key of policy tests ."))

// prepare reads the request as the webhook does. Errors name the field.
func prepare(folder fs.FS, o *Operation, s *session) (*prepared, error) {
	if (o.Kubernetes == nil) == (o.Tool == nil) {
		return nil, fmt.Errorf("operation: exactly one of kubernetes and tool is required")
	}
	if o.Tool != nil {
		operation, err := toolOperation(o.Tool)
		if err != nil {
			return nil, fmt.Errorf("operation.tool.%w", err)
		}
		operation.Spared = o.Spared
		return &prepared{operation: operation, arguments: o.Tool.Arguments}, nil
	}
	k := o.Kubernetes
	request, err := requestOf(folder, k, s)
	if err != nil {
		return nil, fmt.Errorf("operation.kubernetes.%w", err)
	}
	key := objectKey{group: request.Group, resource: request.Resource, namespace: request.Namespace, name: request.Name}
	if key.group == "" && key.resource == "namespaces" {
		key.namespace = "" // admission names the Namespace itself here
	}
	operation, err := kube.Operation(request, s.known(k, &request, key))
	if err != nil {
		return nil, fmt.Errorf("operation.kubernetes: %w", err)
	}
	if operation.Target.UID == "" && (k.Verb == policy.VerbConnect || request.Subresource != "") {
		operation.Target.UID = uidOf(key)
	}
	operation.Spared = o.Spared
	return &prepared{request: request, operation: operation}, nil
}

// known is what the manager would find out about the request's target and what it reaches through it.
func (s *session) known(k *KubernetesOperation, request *kube.Request, key objectKey) kube.Known {
	known := kube.Known{
		Origin: k.Origin, LastWriter: k.LastWriter, Recreated: k.Recreated, SessionNamespaces: s.view.Authority.Namespaces,
	}
	if known.Origin == "" {
		known.Origin = policy.OriginUnknown
		if k.Verb != policy.VerbCreate {
			known.Origin = s.originOf(key)
		}
	}
	if target, ok := kube.ScaleTargetOf(request); ok {
		known.ScaleTarget = s.originOf(objectKey{target.Group, pluralOf(target.Group, target.Kind), request.Namespace, target.Name})
	}
	for _, claim := range kube.ClaimsOf(*request, known.Origin) {
		made := s.originOf(objectKey{"", "persistentvolumeclaims", request.Namespace, claim.Name}) == policy.OriginThisSession
		if made || claim.Generated && !slices.Contains(k.ForeignClaims, claim.Name) {
			known.OwnClaims = append(known.OwnClaims, claim.Name)
		}
	}
	return known
}

func (s *session) originOf(key objectKey) policy.Origin {
	if slices.Contains(s.created, key) {
		return policy.OriginThisSession
	}
	return policy.OriginUnknown
}

// bind completes the operation with its digest. An operation without an exact form has none.
func (p *prepared) bind(view *policy.SessionView) error {
	if p.operation.Tool != "" {
		return p.bindTool(view)
	}
	exact, err := kube.ExactForm(testKey, p.request, p.operation.Target, kube.Binding{
		SessionUID: view.UID, Epoch: view.Epoch, Stage: p.operation.Stage,
	})
	if err != nil {
		return fmt.Errorf("operation.kubernetes: %w", err)
	}
	p.exact, p.operation.Digest = exact, testKey.Digest(exact.Canonical)
	return nil
}

func requestOf(folder fs.FS, k *KubernetesOperation, s *session) (kube.Request, error) {
	request := kube.Request{
		Version: k.Version, Namespace: k.Namespace, Name: k.Name, DryRun: k.DryRun, Options: k.Options,
		ServiceAccount: kube.ServiceAccount{Namespace: s.view.Namespace, Name: s.serviceAccount},
	}
	var err error
	for _, part := range []struct {
		field string
		from  *Manifest
		to    *map[string]any
	}{{"manifest", &k.Manifest, &request.Object}, {"old", &k.Old, &request.OldObject}, {"parent", &k.Parent, &request.Parent}} {
		if *part.to, err = part.from.read(folder); err != nil {
			return request, fmt.Errorf("%s: %w", part.field, err)
		}
	}
	shown := request.Object
	if shown == nil {
		shown = request.OldObject
	}
	if err := name(&request, k, shown); err != nil {
		return request, err
	}
	return request, complete(&request, k)
}

func (m *Manifest) read(folder fs.FS) (map[string]any, error) {
	if m.File == "" {
		return maps.Clone(m.Object), nil
	}
	var object map[string]any
	if err := one(folder, m.File, &object); err != nil {
		return nil, err
	}
	return object, nil
}

// name fills in what the request is about from the fields of the case, then from the object that it shows.
func name(request *kube.Request, k *KubernetesOperation, shown map[string]any) error {
	apiVersion, _ := shown["apiVersion"].(string)
	request.Kind, _ = shown["kind"].(string)
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return fmt.Errorf("manifest: apiVersion: %w", err)
	}
	request.Group = version.Group
	if k.Group != nil {
		request.Group = *k.Group
	}
	if request.Version == "" {
		request.Version = "v1"
		if k.Group == nil && version.Version != "" {
			request.Version = version.Version
		}
	}
	request.Resource, request.Subresource, _ = strings.Cut(k.Resource, "/")
	if request.Resource == "" {
		if request.Kind == "" {
			return fmt.Errorf("resource: is required without a manifest that has a kind")
		}
		request.Resource = pluralOf(request.Group, request.Kind)
	}
	metadata, _ := shown["metadata"].(map[string]any)
	if request.Namespace == "" {
		request.Namespace, _ = metadata["namespace"].(string)
	}
	if request.Name == "" {
		request.Name, _ = metadata["name"].(string)
	}
	if request.Group == "" && request.Resource == "namespaces" && request.Namespace == "" {
		request.Namespace = request.Name // as admission does
	}
	return nil
}

// complete checks that the request has what its verb needs and gives objects that exist a UID.
func complete(request *kube.Request, k *KubernetesOperation) error {
	request.Operation = strings.ToUpper(string(k.Verb))
	exists := uidOf(objectKey{request.Group, request.Resource, request.Namespace, request.Name})
	switch {
	case k.Verb == policy.VerbCreate && request.Object == nil:
		return fmt.Errorf("manifest: is required for create")
	case k.Verb == policy.VerbCreate:
	case k.Verb == policy.VerbUpdate && request.Object == nil:
		return fmt.Errorf("manifest: is required for update")
	case k.Verb == policy.VerbUpdate && request.OldObject == nil:
		return fmt.Errorf("old: is required for update, because admission sees the object before")
	case k.Verb == policy.VerbUpdate:
		setMetadata(request.Object, "uid", exists)
		setMetadata(request.OldObject, "uid", exists)
		if request.Parent != nil {
			setMetadata(request.Parent, "uid", exists)
		}
	case k.Verb == policy.VerbDelete && request.Object != nil:
		return fmt.Errorf("manifest: is not allowed for delete; the object is old")
	case k.Verb == policy.VerbDelete:
		if request.OldObject == nil {
			request.OldObject = map[string]any{}
			setMetadata(request.OldObject, "name", request.Name)
		}
		setMetadata(request.OldObject, "uid", exists)
	case k.Verb == policy.VerbConnect && request.Object != nil:
		return fmt.Errorf("manifest: is not allowed for connect; what is connected to stands in options")
	case k.Verb == policy.VerbConnect:
		request.Object, request.Options = k.Options, nil
		if request.Object == nil {
			request.Object = map[string]any{}
		}
	default:
		return fmt.Errorf("verb: %q is none of create, update, delete and connect (a patch is an update)", k.Verb)
	}
	return nil
}

// setMetadata sets a field that the object does not have yet.
func setMetadata(object map[string]any, field, value string) {
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	if _, has := metadata[field]; !has {
		metadata[field] = value
	}
	object["metadata"] = metadata
}

func uidOf(k objectKey) string {
	return fmt.Sprintf("uid-%s/%s/%s/%s", k.group, k.resource, k.namespace, k.name)
}
