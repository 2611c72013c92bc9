package webhook

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const (
	// stampAge is how long ago a stamp may have been written within one request: the API server gives up on a write
	// after 34 s, and it may call the stamping entry and the validating one more than once, on different replicas.
	stampAge = 35 * time.Second
	// stampSkew is how far the clocks of two replicas may differ.
	stampSkew = 5 * time.Second
)

// stampDecision fills in what the server knows about an answer. What the client claims differently is named, so that a
// forged name is an error and not silently corrected (requirement G-4).
func (r *objectReview) stampDecision(path *field.Path, d v1alpha1.GrantDecision, g *v1alpha1.PermissionGrant) (v1alpha1.GrantDecision, field.ErrorList) {
	var found field.ErrorList
	found = append(found, fillOrRefuse(&d.Approver, r.caller.Username, path.Child("approver"))...)
	found = append(found, fillOrRefuse(&d.ApproverUID, r.caller.UID, path.Child("approverUID"))...)
	found = append(found, fillOrRefuse(&d.Relay, r.caller.Relay(), path.Child("relay"))...)
	found = append(found, fillOrRefuse(&d.GrantUID, g.UID, path.Child("grantUID"))...)
	request := &g.Spec.Request
	_, current := r.snapshot.Engine.Identity(request.Session.Namespace, request.Operation.Target.Namespace)
	if d.PolicyIdentity != "" && d.PolicyIdentity != current {
		found = append(found, field.Forbidden(path.Child("policyIdentity"), "is written by the server, and the policies are others now; leave it out and answer again"))
	}
	d.PolicyIdentity = current
	groups := meetingGroups(r.caller.Groups, request.Requirements)
	if len(d.ApproverGroups) > 0 && !slices.Equal(d.ApproverGroups, groups) {
		found = append(found, field.Forbidden(path.Child("approverGroups"), "is written by the server and is not what the caller has; leave it out"))
	}
	d.ApproverGroups = groups
	found = append(found, r.fillTime(&d.DecidedTime, path.Child("decidedTime"))...)
	if d.Scope.Type == "" {
		d.Scope.Type = v1alpha1.ScopeExact
	}
	r.stampUses(&d, request)
	return d, found
}

func (r *objectReview) stampRevocation(revocation v1alpha1.Revocation) (v1alpha1.Revocation, field.ErrorList) {
	found := fillOrRefuse(&revocation.By, r.caller.Username, revocationPath.Child("by"))
	found = append(found, fillOrRefuse(&revocation.Relay, r.caller.Relay(), revocationPath.Child("relay"))...)
	return revocation, append(found, r.fillTime(&revocation.Time, revocationPath.Child("time"))...)
}

func fillOrRefuse[T ~string](value *T, truth T, path *field.Path) field.ErrorList {
	if *value != "" && *value != truth {
		return field.ErrorList{field.Forbidden(path, "is written by the server and is not who or what this request comes from; leave it out")}
	}
	*value = truth
	return nil
}

// fillTime keeps a time that this request was stamped with a moment ago, and refuses any other.
func (r *objectReview) fillTime(value **metav1.Time, path *field.Path) field.ErrorList {
	if *value == nil {
		*value = &metav1.Time{Time: r.now.Truncate(time.Second)}
		return nil
	}
	if age := r.now.Sub((*value).Time); age > stampAge || age < -stampSkew {
		return field.ErrorList{field.Forbidden(path, "is written by the server; leave it out")}
	}
	return nil
}

// meetingGroups are those of the caller's groups that count: for each requirement that is limited to groups, the first
// of them that the caller is in. Other groups of a person are nobody's business here.
func meetingGroups(groups []string, requirements []v1alpha1.GrantRequirement) []string {
	var meeting []string
	for i := range requirements {
		for _, group := range requirements[i].ApproverGroups {
			if slices.Contains(groups, group) {
				if !slices.Contains(meeting, group) {
					meeting = append(meeting, group)
				}
				break
			}
		}
	}
	return meeting
}
