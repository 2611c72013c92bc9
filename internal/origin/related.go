package origin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// ofScaleTarget reads what an autoscaler scales. What does not exist yet has no maker; empty is what cannot be read.
func (f *Finder) ofScaleTarget(ctx context.Context, namespace string, target kube.ScaleTarget, session string) (policy.Origin, error) {
	if target.Kind == "" || target.Name == "" {
		return "", nil
	}
	mapping, err := f.Mapper.RESTMapping(schema.GroupKind{Group: target.Group, Kind: target.Kind})
	if err != nil {
		return "", ignoreNoMatch(err)
	}
	object, readable, err := f.get(ctx, mapping.GroupVersionKind, namespace, target.Name)
	switch {
	case err != nil || !readable:
		return "", err
	case object == nil:
		return policy.OriginUnknown, nil
	default:
		return f.byStamp(object, mapping.Resource.Group, mapping.Resource.Resource, session), nil
	}
}

var claimKind = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}

// ownClaims names those of the claims that the request gives to pods which nobody else can lose. A claim that does not
// exist holds nothing: whoever makes it later makes it for the pod that waits for it. With more claims than are looked at
// none is own, and none is read.
func (f *Finder) ownClaims(ctx context.Context, req *kube.Request, found *Found, session string) ([]string, error) {
	scaled := *req
	scaled.Parent = found.Parent
	given := kube.ClaimsOf(scaled, found.Origin)
	if len(given) > kube.MaxClaims {
		return nil, nil
	}
	var own []string
	for _, claim := range given {
		object, readable, err := f.get(ctx, claimKind, req.Namespace, claim.Name)
		if err != nil {
			return nil, err
		}
		if readable && (object == nil || f.ownClaim(object, claim, &scaled, found, session)) {
			own = append(own, claim.Name)
		}
	}
	return own, nil
}

// ownClaim: a claim bears the session's stamp, or the controller of the session's StatefulSet made it from a template:
// under the name of the template and no earlier than the StatefulSet. An older one waited there for it.
func (f *Finder) ownClaim(claim *unstructured.Unstructured, given kube.Claim, req *kube.Request, found *Found, session string) bool {
	if f.byStamp(claim, "", "persistentvolumeclaims", session) == policy.OriginThisSession {
		return true
	}
	set := req.OldObject
	if found.Parent != nil {
		set = found.Parent
	}
	if !given.Generated || set == nil || found.Origin != policy.OriginThisSession {
		return false
	}
	made, setMade := claim.GetCreationTimestamp(), (&unstructured.Unstructured{Object: set}).GetCreationTimestamp()
	return !setMade.IsZero() && !made.Before(&setMade)
}
