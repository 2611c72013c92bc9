package steering

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// couldMatch is for prohibitions: a field that the operation leaves open (the name of a collection's member or of an
// object that is still to be named) counts as matching, so leaving it out is no way around.
func (s *Selector) couldMatch(op *policy.Operation) bool { return s.matches(op, true) }

// surelyMatches is for narrowings: a field that the operation leaves open counts as not matching.
func (s *Selector) surelyMatches(op *policy.Operation) bool { return s.matches(op, false) }

func (s *Selector) matches(op *policy.Operation, open bool) bool {
	if len(s.Verbs) == 0 && !op.Verb.Mutating() || len(s.Verbs) > 0 && !slices.Contains(s.Verbs, op.Verb) {
		return false
	}
	if op.Tool != "" {
		return len(s.Groups)+len(s.Resources)+len(s.Names) == 0 && anyPattern(s.Tools, op.Tool, open)
	}
	if len(s.Tools) > 0 {
		return false
	}
	t := &op.Target
	return (len(s.Groups) == 0 || slices.Contains(s.Groups, t.Group) || slices.Contains(s.Groups, "*")) &&
		(len(s.Resources) == 0 || slices.ContainsFunc(s.Resources, func(entry string) bool { return fitsResource(entry, t) })) &&
		anyPattern(s.Names, t.Name, open)
}

func fitsResource(entry string, t *policy.Target) bool {
	resource, subresource, _ := strings.Cut(entry, "/")
	return entry == "*" || resource == t.Resource && (subresource == t.Subresource || subresource == "*" && t.Subresource != "")
}

// anyPattern: an empty list fits everything, an empty value what open says.
func anyPattern(patterns []string, value string, open bool) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		switch {
		case wild && prefix == "":
			return true
		case value == "":
			return open
		default:
			return wild && strings.HasPrefix(value, prefix) || pattern == value
		}
	})
}

// accessReview tells questions about permissions: they are created to be answered and never stored.
func accessReview(op *policy.Operation) bool {
	if op.Verb != policy.VerbCreate || op.Target.Subresource != "" {
		return false
	}
	switch op.Target.Group {
	case "authorization.k8s.io":
		return slices.Contains([]string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "localsubjectaccessreviews"}, op.Target.Resource)
	case "authentication.k8s.io":
		return op.Target.Resource == "selfsubjectreviews"
	default:
		return false
	}
}

// leaseRenewal tells an update of a Lease that moves spec.renewTime and nothing else. Taking a lease over, or carrying
// data in its annotations, is an ordinary write. Without both objects it is not proven and not spared.
func leaseRenewal(op *policy.Operation) bool {
	t := &op.Target
	if op.Verb != policy.VerbUpdate || t.Group != "coordination.k8s.io" || t.Resource != "leases" || t.Subresource != "" || op.Kubernetes == nil {
		return false
	}
	before, after := withoutRenewal(op.Kubernetes.OldObject), withoutRenewal(op.Kubernetes.Object)
	return before != nil && after != nil && reflect.DeepEqual(before, after)
}

// withoutRenewal copies a Lease without the fields that a renewal moves; nil for what is not one.
func withoutRenewal(lease map[string]any) map[string]any {
	spec, hasSpec := lease["spec"].(map[string]any)
	metadata, hasMetadata := lease["metadata"].(map[string]any)
	if !hasSpec || !hasMetadata {
		return nil
	}
	lease, spec, metadata = maps.Clone(lease), maps.Clone(spec), maps.Clone(metadata)
	delete(spec, "renewTime")
	delete(metadata, "managedFields")
	delete(metadata, "resourceVersion")
	lease["spec"], lease["metadata"] = spec, metadata
	return lease
}
