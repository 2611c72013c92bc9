package grant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// EffectDeadline is how long after its last attempt an effect can still appear: the API server's fixed 34 s for a write,
// and 15 s for clocks and lists.
const EffectDeadline = 49 * time.Second

// fate of a reserved use.
type fate int

const (
	// inFlight: an attempt can still take effect.
	inFlight fate = iota
	// landed: the effect is there.
	landed
	// dead: it is proven that no attempt took effect, and none can any more.
	dead
	// lost: nobody can tell.
	lost
)

// fateOf looks what became of a reserved use. text says what was seen, in one line.
func (p *Protocol) fateOf(ctx context.Context, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) (what fate, text string, err error) {
	operation := &g.Spec.Request.Operation
	at, attempt := usedOn(g, use), &use.Attempts[len(use.Attempts)-1]
	late := p.Now().Sub(attempt.Time.Time) >= EffectDeadline
	unseen := func(text string) (fate, string, error) {
		if !late {
			return inFlight, "", nil
		}
		return lost, text, nil
	}
	if at.Name == "" {
		return unseen("a generated name cannot be looked for")
	}
	found, err := p.read(ctx, schema.GroupVersionResource{Group: at.Group, Version: at.Version, Resource: at.Resource}, at.Namespace, at.Name)
	if err != nil {
		return 0, "", err
	}
	name := fmt.Sprintf("%s uid %s", at.Resource, attempt.TargetUID)
	switch {
	case !found.readable:
		return unseen("the manager may not read " + at.Resource)
	case operation.Verb == v1alpha1.VerbDelete:
		switch {
		case found.object == nil || found.object.GetUID() != attempt.TargetUID:
			return landed, name + " is gone", nil
		case found.object.GetDeletionTimestamp() != nil:
			return landed, name + " is deleting", nil
		case late:
			return dead, name + " is still there after " + EffectDeadline.String(), nil
		}
		return inFlight, "", nil
	case operation.Verb == v1alpha1.VerbUpdate:
		return p.fateOfUpdate(ctx, g, use, found, late)
	case operation.Verb == v1alpha1.VerbCreate && at.Subresource == "":
		if found.object != nil && found.object.GetUID() == attempt.TargetUID {
			return landed, name + " was made", nil
		}
		return p.fateOfCreation(ctx, found, at, attempt, late)
	default:
		return unseen("no effect was seen within " + EffectDeadline.String())
	}
}

// fateOfCreation looks whether the object was made and has gone since.
func (p *Protocol) fateOfCreation(ctx context.Context, found target, at *v1alpha1.GrantTarget, attempt *v1alpha1.UseAttempt, late bool) (fate, string, error) {
	if attempt.OldResourceVersion == "" {
		if !late {
			return inFlight, "", nil
		}
		return lost, "the history of the object was not readable", nil
	}
	h := p.historyOf(found.kind, at)
	made, err := h.after(ctx, attempt.OldResourceVersion, func(event watch.Event) bool { return uidOf(event) == attempt.TargetUID })
	switch {
	case errors.Is(err, errHistoryGone):
		return lost, errHistoryGone.Error(), nil
	case err != nil:
		return 0, "", err
	case made != nil:
		return landed, fmt.Sprintf("%s uid %s was made", at.Resource, attempt.TargetUID), nil
	case !late:
		return inFlight, "", nil
	}
	whole, err := h.whole(ctx, attempt.OldResourceVersion, func(event watch.Event) bool { return uidOf(event) == attempt.TargetUID })
	switch {
	case errors.Is(err, errHistoryGone):
		return lost, errHistoryGone.Error(), nil
	case err != nil:
		return 0, "", err
	case whole.seen:
		return landed, fmt.Sprintf("%s uid %s was made", at.Resource, attempt.TargetUID), nil
	case whole.complete:
		return dead, "it was not made within " + EffectDeadline.String(), nil
	case p.Now().Sub(attempt.Time.Time) >= 2*EffectDeadline:
		return lost, "the history of the object is not shown to its end", nil
	default:
		return inFlight, "", nil
	}
}

func uidOf(event watch.Event) types.UID {
	if object, ok := event.Object.(client.Object); ok {
		return object.GetUID()
	}
	return ""
}

// fateOfUpdate reads the version that follows the one which the attempt was made on. A write carries the resourceVersion
// that its review showed, so it is that version or it is none.
func (p *Protocol) fateOfUpdate(ctx context.Context, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse, found target, late bool) (fate, string, error) {
	at, attempt := usedOn(g, use), &use.Attempts[len(use.Attempts)-1]
	if attempt.OldResourceVersion == "" {
		return lost, "the attempt has no resourceVersion", nil
	}
	empties := emptiesFinalizers(g, use)
	if empties && (found.object == nil || found.object.GetUID() != attempt.TargetUID) {
		return deletedAfter(g, use), "it is gone", nil
	}
	if object := found.object; object != nil && object.GetUID() == attempt.TargetUID && object.GetResourceVersion() == attempt.OldResourceVersion {
		if late {
			return dead, "it is unchanged after " + EffectDeadline.String(), nil
		}
		return inFlight, "", nil
	}
	h := p.historyOf(found.kind, at)
	next, err := h.after(ctx, attempt.OldResourceVersion, func(watch.Event) bool { return true })
	switch {
	case errors.Is(err, errHistoryGone):
		return lost, errHistoryGone.Error(), nil
	case err != nil:
		return 0, "", err
	case next == nil && late:
		return lost, "the version after " + attempt.OldResourceVersion + " was not shown", nil
	case next == nil:
		return inFlight, "", nil
	}
	what, text, err := p.judge(g, use, next)
	if what == dead && empties && !late {
		return inFlight, "", err // the deletion that it ends in may come on a later version
	}
	return what, text, err
}

// judge tells whether a version is what one of the last attempts has written.
func (p *Protocol) judge(g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse, next *watch.Event) (fate, string, error) {
	t, attempt := usedOn(g, use), &use.Attempts[len(use.Attempts)-1]
	lines, known := changeOf(g, use)
	version, ok := next.Object.(*unstructured.Unstructured)
	switch {
	case !ok:
		return lost, "the version after " + attempt.OldResourceVersion + " cannot be read", nil
	case next.Type == watch.Deleted && emptiesFinalizers(g, use):
		return deletedAfter(g, use), "it is gone", nil
	case next.Type == watch.Deleted, version.GetUID() != attempt.TargetUID:
		return dead, "it was deleted before the change", nil
	}
	carries, overtaken := "version "+version.GetResourceVersion()+" carries the change", "version "+version.GetResourceVersion()+" came before the change"
	outcome := kube.OutcomeUnclear
	if known {
		var err error
		outcome, err = kube.OutcomeOf(p.Key, policy.Target{
			Group: t.Group, Version: t.Version, Resource: t.Resource, Subresource: t.Subresource, Namespace: t.Namespace, Name: t.Name,
		}, lines, version.Object)
		if err != nil {
			return 0, "", fmt.Errorf("compare %s %s/%s: %w", t.Resource, t.Namespace, t.Name, err)
		}
	}
	switch outcome {
	case kube.OutcomeCarried:
		return landed, carries, nil
	case kube.OutcomeAbsent:
		return dead, overtaken, nil
	}
	digest, err := kube.ObjectDigest(p.Key, t.Group, t.Resource, version.Object)
	if err != nil {
		return 0, "", fmt.Errorf("digest of %s %s/%s: %w", t.Resource, t.Namespace, t.Name, err)
	}
	for i := range use.Attempts {
		// Attempts on other versions have been proven dead before this one was let through.
		if a := &use.Attempts[i]; a.OldResourceVersion == attempt.OldResourceVersion && a.ObjectDigest != "" && a.ObjectDigest == digest {
			return landed, carries, nil
		}
	}
	if digest == attempt.OldObjectDigest && attempt.ObjectDigest != digest {
		return dead, overtaken, nil
	}
	return lost, "version " + version.GetResourceVersion() + " does not tell", nil
}

func (p *Protocol) historyOf(kind schema.GroupVersionKind, at *v1alpha1.GrantTarget) *history {
	namespace := at.Namespace
	if at.Group == "" && at.Resource == "namespaces" {
		namespace = ""
	}
	return &history{client: p.Client, kind: kind, namespace: namespace, name: at.Name}
}
