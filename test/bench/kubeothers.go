package bench

import (
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/open-policy-agent/opa/v1/ast"

	"stepbeyond.dev/stepbeyond/policy"
)

const kubeRegoHead = `package bench

default class := 3

class := max(matched)

pod := input.object.spec.template.spec

matched contains 4 if pod.hostNetwork

matched contains 4 if pod.hostPID

matched contains 4 if pod.hostIPC

matched contains 4 if pod.containers[_].securityContext.privileged

matched contains 3 if pod.containers[_].ports[_].hostPort > 0

matched contains 1 if {
	input.operation in {"create", "update"}
	input.resource in {ORDINARY}
	input.namespace == "checkout"
	input.origin == "ThisSession"
}

development if input.object.metadata.labels.tier == "development"

`

// newKubeOPA gives OPA the request's fields and the whole object.
func newKubeOPA(p KubePolicy) (func(*KubeRequest) (policy.Class, error), error) {
	var module strings.Builder
	module.WriteString(strings.Replace(kubeRegoHead, "ORDINARY", quoted(ordinary), 1))
	for i := range p {
		rule := &p[i]
		fmt.Fprintf(&module, "matched contains %d if {\n\tinput.group == %q\n\tinput.resource == %q\n\tinput.operation in {%s}\n"+
			"\tstartswith(input.name, %q)\n\tinput.object.spec.replicas > %d\n\tnot development\n}\n\n",
			rule.Class, rule.Group, rule.Resource, quoted(rule.Verbs), rule.NamePrefix, rule.MoreReplicasThan)
	}
	query, err := prepareRego(module.String())
	if err != nil {
		return nil, err
	}
	return func(r *KubeRequest) (policy.Class, error) {
		object, err := ast.InterfaceToValue(r.Object)
		if err != nil {
			return 0, fmt.Errorf("convert object: %w", err)
		}
		return evalRego(query, ast.NewObject(
			ast.Item(keyOperation, ast.StringTerm(strings.ToLower(r.Operation))), ast.Item(keyGroup, ast.StringTerm(r.Group)),
			ast.Item(keyResource, ast.StringTerm(r.Resource)), ast.Item(keyNamespace, ast.StringTerm(r.Namespace)),
			ast.Item(keyName, ast.StringTerm(r.Name)), ast.Item(keyOrigin, ast.StringTerm(string(r.Origin))), ast.Item(keyObject, ast.NewTerm(object)),
		))
	}, nil
}

var (
	keyOperation = ast.StringTerm("operation")
	keyGroup     = ast.StringTerm("group")
	keyResource  = ast.StringTerm("resource")
	keyNamespace = ast.StringTerm("namespace")
	keyName      = ast.StringTerm("name")
	keyOrigin    = ast.StringTerm("origin")
	keyObject    = ast.StringTerm("object")
)

const kubeCedarHead = `
forbid (principal, action, resource) when { context.object.spec.template.spec has hostNetwork && context.object.spec.template.spec.hostNetwork ||
  context.object.spec.template.spec has hostPID && context.object.spec.template.spec.hostPID ||
  context.object.spec.template.spec has hostIPC && context.object.spec.template.spec.hostIPC };
forbid (principal, action, resource) when { context.privileged };
permit (principal, action, resource) when { context.hostPort };
permit (principal, action, resource) when
  { ["create", "update"].contains(context.verb) && [ORDINARY].contains(context.resource) && context.namespace == "checkout" && context.origin == "ThisSession" };
`

// newKubeCedar gives Cedar the request's fields and the whole object. Cedar cannot look for one element of a list, so
// what the fixed rules ask about any container is found by plain Go.
func newKubeCedar(p KubePolicy) (func(*KubeRequest) (policy.Class, error), error) {
	return kubeCedarOf(p, func(rule *KubeRule) (scope, condition string) {
		return "(principal, action, resource)", fmt.Sprintf("context.group == %q && context.resource == %q && ", rule.Group, rule.Resource)
	})
}

// newKubeCedarScoped is the same with group and resource in the scope of each policy.
func newKubeCedarScoped(p KubePolicy) (func(*KubeRequest) (policy.Class, error), error) {
	return kubeCedarOf(p, func(rule *KubeRule) (scope, condition string) {
		return fmt.Sprintf("(principal, action, resource == Resource::%q)", rule.Group+"/"+rule.Resource), ""
	})
}

func kubeCedarOf(p KubePolicy, selector func(*KubeRule) (scope, condition string)) (func(*KubeRequest) (policy.Class, error), error) {
	var document strings.Builder
	document.WriteString(strings.Replace(kubeCedarHead, "ORDINARY", quoted(ordinary), 1))
	for i := range p {
		rule := &p[i]
		scope, condition := selector(rule)
		// The verb is no action of the scope: "action in [...]" costs Cedar an allocation in every rule.
		fmt.Fprintf(&document, "%s %s when { %s[%s].contains(context.verb) && context.name like %q && context.object.spec.replicas > %d && "+
			"!(context.object.metadata has labels && context.object.metadata.labels has tier && context.object.metadata.labels.tier == \"development\") };\n",
			cedarEffect(rule.Class), scope, condition, quoted(rule.Verbs), rule.NamePrefix+"*", rule.MoreReplicasThan)
	}
	fixed := []policy.Class{policy.ClassForbidden, policy.ClassForbidden, policy.ClassAsk, policy.ClassAuto}
	classOf := func(i int) policy.Class {
		if i < len(fixed) {
			return fixed[i]
		}
		return p[i-len(fixed)].Class
	}
	return prepareCedar(document.String(), classOf, kubeCedarRequest)
}

func kubeCedarRequest(r *KubeRequest) cedar.Request {
	privileged, hostPort := containers(r.Object)
	verb := types.String(strings.ToLower(r.Operation))
	return cedar.Request{
		Principal: types.NewEntityUID("Session", "agent"),
		Action:    types.NewEntityUID("Verb", verb),
		Resource:  types.NewEntityUID("Resource", types.String(r.Group+"/"+r.Resource)),
		Context: types.NewRecord(types.RecordMap{
			"verb": verb, "group": types.String(r.Group), "resource": types.String(r.Resource), "namespace": types.String(r.Namespace), "name": types.String(r.Name),
			"origin": types.String(r.Origin), "object": cedarValue(r.Object),
			"privileged": types.Boolean(privileged), "hostPort": types.Boolean(hostPort),
		}),
	}
}

// containers tells whether any container is privileged and whether any has a host port.
func containers(object map[string]any) (privileged, hostPort bool) {
	list, _ := at(object, "spec", "template", "spec")["containers"].([]any)
	for _, item := range list {
		container, _ := item.(map[string]any)
		privileged = privileged || at(container, "securityContext")["privileged"] == true
		ports, _ := container["ports"].([]any)
		for _, port := range ports {
			fields, _ := port.(map[string]any)
			number, _ := fields["hostPort"].(int64)
			hostPort = hostPort || number > 0
		}
	}
	return privileged, hostPort
}

// cedarValue converts decoded JSON without floats and nulls, of which the measured objects have none.
func cedarValue(value any) types.Value {
	switch v := value.(type) {
	case map[string]any:
		record := make(types.RecordMap, len(v))
		for key, child := range v {
			record[types.String(key)] = cedarValue(child)
		}
		return types.NewRecord(record)
	case []any:
		set := make([]types.Value, 0, len(v))
		for _, child := range v {
			set = append(set, cedarValue(child))
		}
		return types.NewSet(set...)
	case int64:
		return types.Long(v)
	case bool:
		return types.Boolean(v)
	default:
		text, _ := v.(string)
		return types.String(text)
	}
}
