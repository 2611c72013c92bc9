package identity

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity/authority"
)

// deriveChild makes the child session of a pod that the parent's agent wrote. template is the one of the pod's own
// ServiceAccount; nil when there is none. The child has what both allow, and one child fewer than the parent, so that it
// always has less. It follows the workload, whatever the template says: one child per workload can be counted. It has no
// adapter, because nobody but an agent says that one runs there. ok is false when parent and template have nothing in
// common.
func (o *Opening) deriveChild(parent *v1alpha1.AgentSession, template *v1alpha1.SessionTemplate, limit int32) (child *v1alpha1.AgentSession, ok bool) {
	root := o.Root
	child = &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: ChildName(root, parent.UID)},
		Spec: v1alpha1.AgentSessionSpec{
			Identity: v1alpha1.SessionIdentity{
				Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: o.Pod.Spec.ServiceAccountName, RootOwner: &root,
			},
			UserName: parent.Spec.UserName, ModelTier: parent.Spec.ModelTier, InitiativeMode: parent.Spec.InitiativeMode,
			Parent:    &v1alpha1.ParentSession{Name: parent.Name, UID: parent.UID},
			Authority: *parent.Spec.Authority.DeepCopy(), DeadlineTime: parent.Spec.DeadlineTime,
		},
	}
	spec := &child.Spec
	if template != nil {
		child.Labels = map[string]string{v1alpha1.LabelTemplate: template.Name}
		if spec.Authority, ok = authority.Meet(&parent.Spec.Authority, &template.Authority); !ok {
			return nil, false
		}
		if own := deadline(template, o.Now); own.Before(&spec.DeadlineTime) {
			spec.DeadlineTime = own
		}
	}
	if spec.Authority.Budgets == nil {
		spec.Authority.Budgets = &v1alpha1.Budgets{}
	}
	budgets := spec.Authority.Budgets
	if budgets.MaxChildSessions == nil || *budgets.MaxChildSessions >= limit {
		budgets.MaxChildSessions = new(limit - 1)
	}
	return child, true
}

// CheckChild says field by field what a child session has that it must not have beside its parent. limit is how many
// children the parent may have (ChildLimit); at least 1.
func CheckChild(child, parent *v1alpha1.AgentSession, limit int32) field.ErrorList {
	var found field.ErrorList
	spec := field.NewPath("spec")
	same := func(name string, equal bool) {
		if !equal {
			found = append(found, field.Invalid(spec.Child(name), field.OmitValueType{}, fmt.Sprintf("must be that of parent session %q", parent.Name)))
		}
	}
	same("userName", child.Spec.UserName == parent.Spec.UserName)
	same("modelTier", child.Spec.ModelTier == parent.Spec.ModelTier)
	same("initiativeMode", child.Spec.InitiativeMode == parent.Spec.InitiativeMode)
	if parent.Spec.DeadlineTime.Before(&child.Spec.DeadlineTime) {
		found = append(found, field.Invalid(spec.Child("deadlineTime"), field.OmitValueType{}, fmt.Sprintf("is later than that of parent session %q", parent.Name)))
	}
	own := parent.Spec.Authority.DeepCopy()
	if own.Budgets == nil {
		own.Budgets = &v1alpha1.Budgets{}
	}
	own.Budgets.MaxChildSessions = new(limit - 1)
	bound := authority.Bound{Authority: own, Name: fmt.Sprintf("parent session %q", parent.Name)}
	return append(found, bound.Check(spec.Child("authority"), &child.Spec.Authority)...)
}

// ChildLimit is how many live descendants a session may have: by its own budget and by its namespace's profile.
func ChildLimit(session *v1alpha1.AgentSession, caps *v1alpha1.Caps) int32 {
	limit := *caps.MaxChildSessionsPerSession
	if b := session.Spec.Authority.Budgets; b != nil && b.MaxChildSessions != nil {
		limit = min(limit, *b.MaxChildSessions)
	}
	return limit
}
