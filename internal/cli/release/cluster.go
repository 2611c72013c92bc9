package release

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// clusterRelease is one run of release --cluster. It holds no state: a run that was interrupted is continued by the next.
type clusterRelease struct {
	*options
	client client.Client
}

func (r *clusterRelease) run(ctx context.Context) error {
	cluster, err := r.ClusterName()
	if err != nil {
		return err
	}
	if err := r.may(ctx, "ungovern", authorizationv1.ResourceAttributes{
		Group: v1alpha1.GroupVersion.Group, Resource: "clusteragentpolicies",
	}); err != nil {
		return err
	}
	if err := checkDead(ctx, r.client); err != nil {
		return err
	}
	found, err := everything(ctx, r.client)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		fmt.Fprintln(r.Out, lookForFiles(ctx, r.client).saying(cluster, ""))
		return nil
	}
	// Half a removal is worse than none: FORBIDDEN would be refused and ASK would not.
	for _, t := range found {
		if err := r.may(ctx, "delete", authorizationv1.ResourceAttributes{Group: t.kind.Group, Resource: t.resource, Name: t.name}); err != nil {
			return err
		}
	}
	if r.dryRun == dryRunNone {
		if err := r.confirmed(ctx, cluster, len(found)); err != nil {
			return err
		}
	}
	return r.remove(ctx, cluster, found)
}

func (r *clusterRelease) may(ctx context.Context, verb string, what authorizationv1.ResourceAttributes) error {
	what.Verb = verb
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	if err := r.client.Create(ctx, review); err != nil {
		return fmt.Errorf("ask the API server what you may do: %w", err)
	}
	if review.Status.Allowed && !review.Status.Denied {
		return nil
	}
	object := what.Resource + "." + what.Group
	if what.Name != "" {
		object += " " + what.Name
	}
	return fmt.Errorf("releasing the cluster needs the verb %s on %s, which you do not have; nothing was removed", verb, object)
}

// confirmed has the name typed, raises the alarm, and looks again whether a manager came back meanwhile.
func (r *clusterRelease) confirmed(ctx context.Context, cluster string, objects int) error {
	if r.confirm == "" {
		fmt.Fprintf(r.ErrOut, "This removes %d objects, and with them all enforcement from cluster %s. Agents are then limited by RBAC alone.\nType the name of the cluster to go on: ",
			objects, cluster)
		line, err := terminal.ReadLine(ctx, r.In)
		if err != nil {
			return fmt.Errorf("read the confirmation: %w; nothing was removed", err)
		}
		r.confirm = line
	}
	if r.confirm != cluster {
		return fmt.Errorf("the confirmation %q is not the name of the cluster, %s; nothing was removed", r.confirm, cluster)
	}
	if err := checkDead(ctx, r.client); err != nil {
		return err
	}
	alarm := alarm{
		reason: eventClusterReleased, about: "removes all enforcement from the cluster", why: r.reason,
		related: &corev1.ObjectReference{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: enforcement.WebhookConfiguration},
	}
	if err := alarm.raise(ctx, r.client); err != nil {
		return fmt.Errorf("nothing was removed, because nobody would be alarmed: %w", err)
	}
	return nil
}

func (r *clusterRelease) remove(ctx context.Context, cluster string, found []target) error {
	var options []client.DeleteOption
	if r.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	for i, t := range found {
		if r.dryRun != dryRunClient {
			if err := client.IgnoreNotFound(r.client.Delete(ctx, t.object(), options...)); err != nil {
				return fmt.Errorf("delete %s: %w; %d of %d objects are removed, run this again to continue", t, err, i, len(found))
			}
		}
		r.done(t.String() + " deleted")
	}
	if r.dryRun != dryRunNone {
		return nil
	}
	left, err := everything(ctx, r.client)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%s is there still or again: something keeps or writes it, a finalizer or a manager; find it and run this again", left[0])
	}
	fmt.Fprintln(r.Out, lookForFiles(ctx, r.client).saying(cluster, " any more; API servers act on that within seconds"))
	fmt.Fprintf(r.Out, `CustomResourceDefinitions, policies, sessions and grants stay, and so does the rest of the installation.
Undo: start the manager again. It governs who is labeled then; who lost the label %s is forgotten.
`, v1alpha1.LabelProfile)
	return nil
}
