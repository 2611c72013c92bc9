package baselines

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// operation is one kind of operation that a baseline names.
type operation struct {
	group, resource string
	verb            policy.Verb
	origin          policy.Origin
}

const (
	// home is the namespace of the example's session, and profile its profile.
	home    = "example"
	profile = "example"
	// anything stands in selectors for any group, resource or subresource; named is what is asked about in its place.
	anything = "*"
	named    = "example"
)

// clusterScoped are kinds of the core group that have no namespace; everything else is asked about in one.
var clusterScoped = []string{"nodes", "persistentvolumes", "namespaces"}

func (o operation) String() string { return o.text() + " " + o.kind() }

// text is the verb, and whose object it is about where that matters.
func (o operation) text() string {
	switch o.origin {
	case policy.OriginThisSession:
		return string(o.verb) + " own"
	case policy.OriginUnknown:
		return string(o.verb) + " others'"
	default:
		return string(o.verb)
	}
}

// kind is the resource with its group; * where the baseline names none.
func (o operation) kind() string {
	text := strings.ReplaceAll(o.resource, named, anything)
	if o.group != "" {
		text += "." + strings.ReplaceAll(o.group, named, anything)
	}
	return text
}

// classes compares what two baselines make, without any other policy, of every kind of operation that either names.
func classes(before, after *side) ([]ClassChange, int, error) {
	operations := append(mentioned(before), mentioned(after)...)
	slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.key(), b.key()) })
	operations = slices.Compact(operations)
	engines := make([]*policy.Engine, 2)
	for i, s := range []*side{before, after} {
		engine, problems := policy.Compile(policy.Set{
			Baseline: s.Policy, Profiles: map[string]policy.Policy{profile: {}}, Namespaces: map[string]policy.Namespace{home: {Profile: profile}},
		})
		if len(problems) > 0 {
			return nil, 0, fmt.Errorf("compile baseline %s: %w", s, problems[0])
		}
		engines[i] = engine
	}
	var found []ClassChange
	for _, o := range operations {
		understood, err := o.understand()
		if err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", o, err)
		}
		was := engines[0].Decide(understood, session(), time.Time{}).Class
		if now := engines[1].Decide(understood, session(), time.Time{}).Class; now != was {
			found = append(found, ClassChange{Kind: o.kind(), Operations: []string{o.text()}, Before: was.String(), After: now.String()})
		}
	}
	return joinedByKind(found), len(operations), nil
}

// joinedByKind makes one change of those of one kind that are alike.
func joinedByKind(changes []ClassChange) []ClassChange {
	var joined []ClassChange
	for _, c := range changes {
		at := slices.IndexFunc(joined, func(j ClassChange) bool { return j.Kind == c.Kind && j.Before == c.Before && j.After == c.After })
		if at < 0 {
			joined = append(joined, c)
			continue
		}
		joined[at].Operations = append(joined[at].Operations, c.Operations...)
	}
	return joined
}

func (o operation) key() string {
	return strings.Join([]string{o.group, o.resource, string(o.verb), string(o.origin)}, "\x00")
}

// mentioned are the operations that a baseline's rules and entries name.
func mentioned(s *side) []operation {
	var found []operation
	add := func(m *policy.Match) {
		for i := range m.Kubernetes {
			found = append(found, operationsOf(&m.Kubernetes[i])...)
		}
	}
	for i := range s.Rules {
		add(&s.Rules[i].Match)
	}
	for i := range s.Catalogue {
		add(&s.Catalogue[i].Match)
	}
	return found
}

// operationsOf are the operations of a selector: of everything that it leaves open one example, of origins an own object
// and one of others.
func operationsOf(s *policy.KubernetesSelector) []operation {
	groups, resources, verbs := s.Groups, s.Resources, s.Verbs
	if len(groups) == 0 {
		groups = []string{anything}
	}
	if len(resources) == 0 {
		resources = []string{anything}
	}
	if len(verbs) == 0 {
		verbs = []policy.Verb{policy.VerbCreate, policy.VerbUpdate, policy.VerbDelete}
	}
	origins := []policy.Origin{policy.OriginThisSession, policy.OriginUnknown}
	var found []operation
	for _, group := range groups {
		for _, resource := range resources {
			for _, verb := range verbs {
				if verb == policy.VerbImpersonate {
					continue // no write and no read
				}
				o := operation{group: strings.ReplaceAll(group, anything, named), resource: strings.ReplaceAll(resource, anything, named), verb: verb}
				if verb == policy.VerbCreate || verb == policy.VerbRead {
					found = append(found, o)
					continue
				}
				for _, o.origin = range origins {
					found = append(found, o)
				}
			}
		}
	}
	return found
}

// understand is the operation on a plain object, as admission sees it.
func (o operation) understand() (policy.Operation, error) {
	resource, subresource, _ := strings.Cut(o.resource, "/")
	target := policy.Target{Group: o.group, Version: "v1", Resource: resource, Subresource: subresource, Namespace: home, Name: named, Origin: o.origin}
	if o.verb == policy.VerbRead {
		return policy.Operation{
			Capability: policy.CapabilityReadContext, Stage: policy.StageUnderstand, Verb: o.verb, Target: target,
			ReadBy: policy.Parsed, Kubernetes: &policy.KubernetesRequest{},
		}, nil
	}
	object := func() map[string]any {
		return map[string]any{"metadata": map[string]any{"name": named, "namespace": home, "uid": named}}
	}
	request := kube.Request{
		Operation: strings.ToUpper(string(o.verb)), Group: o.group, Version: "v1", Resource: resource, Subresource: subresource,
		Namespace: home, Name: named, ServiceAccount: kube.ServiceAccount{Namespace: home, Name: named},
	}
	if o.group == "" && slices.Contains(clusterScoped, resource) {
		request.Namespace = ""
		if resource == "namespaces" {
			request.Namespace = named // as admission does
		}
	}
	switch o.verb {
	case policy.VerbCreate, policy.VerbConnect:
		request.Object = object()
	case policy.VerbUpdate:
		request.Object, request.OldObject = object(), object()
	case policy.VerbDelete:
		request.OldObject = object()
	}
	return kube.Operation(request, kube.Known{Origin: o.origin, SessionNamespaces: []string{home}})
}

// session may do everything.
func session() policy.SessionView {
	return policy.SessionView{
		State: policy.SessionActive, Namespace: home, Name: named, UID: named, Epoch: 1,
		Authority: policy.Authority{
			Stages:       []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish},
			Capabilities: []policy.Capability{policy.CapabilityExecuteLocal, policy.CapabilityReadContext}, Namespaces: []string{home},
		},
	}
}
