package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

var reopeningPath = field.NewPath("spec", "reopening")

// checkReopening lets a denial alone be reopened: every other end is asked anew without it (requirement G-7).
func (r *objectReview) checkReopening(g, old *v1alpha1.PermissionGrant) field.ErrorList {
	if status := grant.Compute(old, r.now); status.State != v1alpha1.GrantDenied {
		return field.ErrorList{field.Forbidden(reopeningPath, fmt.Sprintf("the grant is %s (%s); only a denied one is reopened", status.State, status.Reason))}
	}
	stamped, found := r.stampReopening(*g.Spec.Reopening)
	if len(found) == 0 && !equality.Semantic.DeepEqual(stamped, *g.Spec.Reopening) {
		found = append(found, field.Forbidden(reopeningPath, "is not stamped with who reopens; send it again"))
	}
	return found
}

func (r *objectReview) stampReopening(reopening v1alpha1.Reopening) (v1alpha1.Reopening, field.ErrorList) {
	found := fillOrRefuse(&reopening.By, r.caller.Username, reopeningPath.Child("by"))
	found = append(found, fillOrRefuse(&reopening.Relay, r.caller.Relay(), reopeningPath.Child("relay"))...)
	return reopening, append(found, r.fillTime(&reopening.Time, reopeningPath.Child("time"))...)
}
