package webhook

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/identity/authority"
)

// session judges an AgentSession that a person opens. An update is the schema's to judge: everything that widens is
// immutable, and a deadline in the past ends the session.
func (r *objectReview) session(ctx context.Context) (field.ErrorList, error) {
	session, _, err := read[v1alpha1.AgentSession](r.req)
	if err != nil || r.req.Operation != admissionv1.Create {
		return nil, err
	}
	found := checkOpener(session, r.caller.Username)
	spec := field.NewPath("spec")
	if !session.Spec.DeadlineTime.After(r.now) {
		found = append(found, field.Invalid(spec.Child("deadlineTime"), omitted, "has passed; give a time to come"))
	}
	namespace := r.req.Namespace
	if !r.snapshot.Governs(namespace) {
		joins, err := r.joins(ctx)
		if err != nil {
			return nil, err
		}
		if joins {
			return append(found, r.notYetGoverned()), nil
		}
		return append(found, field.Invalid(field.NewPath("metadata", "namespace"), omitted, fmt.Sprintf(
			"%s is not governed, so a session there would bind nobody; label it %s=PROFILE or use a governed namespace", namespace, v1alpha1.LabelProfile))), nil
	}
	if session.Spec.Parent != nil {
		below, err := r.belowParent(ctx, session)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	id := &session.Spec.Identity
	if id.Type == v1alpha1.IdentityUser {
		if home, listed := r.snapshot.GovernedUser(id.UserName); !listed || home != namespace {
			found = append(found, field.Invalid(spec.Child("identity", "userName"), omitted, fmt.Sprintf(
				"is not a governed user with sessionNamespace %s; the platform team lists it in spec.governed.users of a ClusterAgentPolicy", namespace)))
		}
		return found, nil
	}
	if template, ok := r.snapshot.Template(namespace, id.ServiceAccountName); ok {
		// Opening a session by hand is no way around what the profile gives the pods of the same ServiceAccount.
		bound := authority.Bound{
			Authority: &template.Authority, Name: fmt.Sprintf("session template %q", template.Name),
			Remedy: ", or the platform team widens the template",
		}
		found = append(found, bound.Check(spec.Child("authority"), &session.Spec.Authority)...)
	}
	return found, nil
}

// belowParent keeps a child that a person opens within its parent, as a child that lineage makes is.
func (r *objectReview) belowParent(ctx context.Context, child *v1alpha1.AgentSession) (field.ErrorList, error) {
	path := field.NewPath("spec", "parent")
	invalid := func(why string) field.ErrorList { return field.ErrorList{field.Invalid(path, omitted, why)} }
	var list v1alpha1.AgentSessionList
	if err := r.live.List(ctx, &list, client.InNamespace(r.req.Namespace)); err != nil {
		return nil, fmt.Errorf("list sessions of namespace %s: %w", r.req.Namespace, err)
	}
	at := slices.IndexFunc(list.Items, func(s v1alpha1.AgentSession) bool {
		return s.Name == child.Spec.Parent.Name && s.UID == child.Spec.Parent.UID
	})
	settings, _ := r.snapshot.Namespace(r.req.Namespace)
	switch {
	case at < 0:
		return invalid("no session of this namespace has this name and uid"), nil
	case settings.Policy == nil:
		return invalid("no valid policy covers the namespace, so it has no children now"), nil
	case child.Spec.Identity.Type == v1alpha1.IdentityServiceAccount && child.Spec.Identity.RootOwner == nil:
		return field.ErrorList{field.Required(field.NewPath("spec", "identity", "rootOwner"), "a child session follows a workload")}, nil
	}
	parent, caps := &list.Items[at], settings.Policy.Spec.WithProfileDefaults().Caps
	if refusal := identity.PlaceBelow(list.Items, parent, caps, r.now); refusal != nil {
		return invalid(refusal.Text), nil
	}
	return identity.CheckChild(child, parent, identity.ChildLimit(parent, caps)), nil
}
