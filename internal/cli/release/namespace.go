package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

const (
	// attempts against others who change the same ClusterAgentPolicy at the same time.
	attempts = 5
	// lookEvery is the wait between two looks at the scope in force.
	lookEvery = 500 * time.Millisecond
)

// namespaceRelease is one run of release -n.
type namespaceRelease struct {
	*options
	client client.Client
}

func (r *namespaceRelease) run(ctx context.Context) error {
	name := r.Namespace()
	w, err := look(ctx, r.client, name)
	if err != nil {
		return err
	}
	p, err := w.planFor(r.policy)
	if err != nil {
		return err
	}
	if p.nothing != "" {
		fmt.Fprintln(r.Out, p.nothing)
		return nil
	}
	if err := r.enter(ctx, p.policy); err != nil {
		return err
	}
	if p.unlabel {
		if err := r.unlabel(ctx, w.namespace); err != nil {
			return err
		}
	}
	if r.dryRun != dryRunNone {
		return nil
	}
	alarm := alarm{reason: eventReleaseRequested, about: "released namespace " + name, why: r.reason, related: policyReference(p.policy)}
	if err := alarm.raise(ctx, r.client); err != nil {
		fmt.Fprintln(r.ErrOut, "Warning: no event says that it was you:", err)
	}
	if err := r.sayWhoElseWrites(p, w.namespace); err != nil {
		return err
	}
	if err := r.await(ctx, name); err != nil {
		return err
	}
	r.sayWhatNow(p, w.namespace)
	return nil
}

// enter adds the entry. The list is replaced whole under its resourceVersion, because an apply would make the plugin an
// owner whom the next sync of a GitOps controller conflicts with.
func (r *namespaceRelease) enter(ctx context.Context, p *v1alpha1.ClusterAgentPolicy) error {
	what := fmt.Sprintf("clusteragentpolicy.stepbeyond.dev/%s", p.Name)
	var err error
	for range attempts {
		if releases(p, r.Namespace()) {
			fmt.Fprintf(r.Out, "%s unchanged: spec.governed.released names %s already\n", what, r.Namespace())
			return nil
		}
		if err = r.patchPolicy(ctx, p); !apierrors.IsConflict(err) {
			break
		}
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return fmt.Errorf("read %s again: %w", what, err)
		}
	}
	switch {
	case apierrors.IsConflict(err):
		return exit.With(exit.Changed, fmt.Errorf("%s changed %d times in between; nothing was released, run it again: %w", what, attempts, err))
	case apierrors.IsInternalError(err):
		return fmt.Errorf("patch %s: %w; without a running manager no namespace can be released, only the cluster: --cluster", what, err)
	case err != nil:
		return fmt.Errorf("patch %s: %w", what, err)
	}
	r.done(fmt.Sprintf("%s patched: spec.governed.released names %s", what, r.Namespace()))
	return nil
}

func (r *namespaceRelease) patchPolicy(ctx context.Context, p *v1alpha1.ClusterAgentPolicy) error {
	if r.dryRun == dryRunClient {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": p.ResourceVersion},
		"spec": map[string]any{"governed": map[string]any{
			"released": append(p.Spec.Governed.Released, v1alpha1.ReleasedNamespace{Namespace: r.Namespace(), Reason: r.reason}),
		}},
	})
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, patch), r.patchOptions())
}

// unlabel takes the profile's label off, provided that it is still the one that was looked at.
func (r *namespaceRelease) unlabel(ctx context.Context, namespace *corev1.Namespace) error {
	was := namespace.Labels[v1alpha1.LabelProfile]
	if r.dryRun != dryRunClient {
		const path = "/metadata/labels/stepbeyond.dev~1profile"
		patch, err := json.Marshal([]map[string]any{{"op": "test", "path": path, "value": was}, {"op": "remove", "path": path}})
		if err != nil {
			return err
		}
		err = r.client.Patch(ctx, namespace.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), r.patchOptions())
		if err != nil {
			return fmt.Errorf("take label %s off namespace %s: %w; the entry is written and the namespace stays enforced until the label goes: kubectl label namespace %s %s-",
				v1alpha1.LabelProfile, namespace.Name, err, namespace.Name, v1alpha1.LabelProfile)
		}
	}
	r.done(fmt.Sprintf("namespace/%s unlabeled: %s was %s", namespace.Name, v1alpha1.LabelProfile, was))
	return nil
}

func (r *namespaceRelease) patchOptions() *client.PatchOptions {
	options := &client.PatchOptions{FieldManager: string(factory.FieldOwner)}
	if r.dryRun == dryRunServer {
		client.DryRunAll.ApplyToPatch(options)
	}
	return options
}

func (r *namespaceRelease) sayWhoElseWrites(p *plan, namespace *corev1.Namespace) error {
	if who := managers(p.policy); who != "" {
		entry, err := yaml.Marshal(map[string]any{"spec": map[string]any{"governed": map[string]any{
			"released": []v1alpha1.ReleasedNamespace{{Namespace: namespace.Name, Reason: r.reason}},
		}}})
		if err != nil {
			return err
		}
		fmt.Fprintf(r.ErrOut, "Warning: %s writes clusteragentpolicy %s, and its next sync takes the entry away unless the source has it too. Commit:\n\n%s\n",
			who, p.policy.Name, entry)
	}
	if who := managers(namespace); who != "" && p.unlabel {
		fmt.Fprintf(r.ErrOut, "Warning: %s writes namespace %s, and its next sync brings the label %s back, which enforces again, unless it goes from the source too.\n",
			who, namespace.Name, v1alpha1.LabelProfile)
	}
	return nil
}

// await looks until the namespace has left the scope in force.
func (r *namespaceRelease) await(ctx context.Context, namespace string) error {
	if !r.wait {
		fmt.Fprintf(r.Out, "namespace/%s stays enforced until the manager has acted\n", namespace)
		return nil
	}
	deadline, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	for {
		covered, err := enforced(deadline, r.client, namespace)
		if err == nil && !covered {
			return nil
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped waiting; the release of namespace %s is written: %w", namespace, ctx.Err())
		case <-deadline.Done():
			return exit.With(exit.TimedOut, fmt.Errorf(
				"namespace %s is still enforced after %s; the release is written and the manager has not acted on it: is it running, and is every ClusterAgentPolicy Ready?",
				namespace, r.timeout))
		case <-time.After(lookEvery):
		}
	}
}

func (r *namespaceRelease) sayWhatNow(p *plan, namespace *corev1.Namespace) {
	if r.wait {
		fmt.Fprintf(r.Out, "namespace/%s released: neither webhook nor floor covers it; API servers act on that within seconds\nFrom now on RBAC alone limits the agents of %s.\n",
			namespace.Name, namespace.Name)
	}
	for _, user := range p.users {
		fmt.Fprintf(r.Out, "User %s stays governed, whose sessions live there: take it off spec.governed.users to let it go.\n", user)
	}
	profile := namespace.Labels[v1alpha1.LabelProfile]
	if profile == "" {
		profile = "PROFILE"
	}
	fmt.Fprintf(r.Out, "Undo: kubectl label namespace %s %s=%s --overwrite, and take the entry off spec.governed.released of clusteragentpolicy %s.\n",
		namespace.Name, v1alpha1.LabelProfile, profile, p.policy.Name)
}
