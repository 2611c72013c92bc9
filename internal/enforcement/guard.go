package enforcement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationDigest holds what the manager wrote last in short, so that a new leader can tell what another version of the
// manager wrote from what somebody else did.
const annotationDigest = "stepbeyond.dev/applied-digest"

// Guarded names one object that a Guard keeps.
type Guarded struct {
	schema.GroupVersionKind
	Name string
}

func (g Guarded) String() string { return g.Kind + " " + g.Name }

// Repair is what was put right in one object.
type Repair struct {
	Guarded
	// Missing: the object was gone. The instances of a definition are then gone for good.
	Missing bool
	// Differences are where it was not as wanted; none when it was missing.
	Differences []Difference
	// Noticed is when the object was read.
	Noticed time.Time
}

// mostDifferences bounds what a sentence about a repair lists.
const mostDifferences = 5

// String is one sentence without its end: what was wrong, and by whose hand if that is known.
func (r Repair) String() string {
	switch {
	case r.Missing && r.Kind == kindDefinition:
		return fmt.Sprintf("%s was missing, and every object of the kind with it; the definition was created again, the objects were not", r.Guarded)
	case r.Missing:
		return fmt.Sprintf("%s was missing and was created again", r.Guarded)
	}
	var places []string
	for _, d := range r.Differences[:min(len(r.Differences), mostDifferences)] {
		places = append(places, d.String())
	}
	if more := len(r.Differences) - len(places); more > 0 {
		places = append(places, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s was changed and was put back: %s", r.Guarded, strings.Join(places, ", "))
}

// ErrNewerDefinition is in the error of Restore for a definition of a newer release that lacks what this one needs. It
// is left as it is.
var ErrNewerDefinition = errors.New("is of a newer release and lacks what this one needs")

// ErrTerminating is in the error of Restore for an object that is being deleted: until it is gone it can neither be
// repaired nor created.
var ErrTerminating = errors.New("is being deleted")

// Guard puts objects into force and keeps them. Only the leader may use it. Methods may be called concurrently; they
// take turns.
type Guard struct {
	// Client writes.
	Client client.Client
	// Live reads past any cache.
	Live client.Reader

	mu     sync.Mutex
	wanted map[Guarded]*unstructured.Unstructured
	// kept are the objects that were as wanted at some time since the start: whatever is wrong with them is news.
	kept map[Guarded]bool
	// created are definitions that were missing at the start and that nobody was told of yet.
	created   map[Guarded]bool
	listeners []chan struct{}
}

// NewGuard guards the custom resource definitions, and nothing else before Put.
func NewGuard(c client.Client, live client.Reader) (*Guard, error) {
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	g := &Guard{
		Client: c, Live: live, wanted: map[Guarded]*unstructured.Unstructured{},
		kept: map[Guarded]bool{}, created: map[Guarded]bool{},
	}
	for _, object := range all {
		g.wanted[refOf(object)] = object
	}
	return g, nil
}

// Guarded lists the objects that are kept.
func (g *Guard) Guarded() []Guarded {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.wanted))
}

// Changed returns a channel that receives when Guarded has more to list.
func (g *Guard) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	listener := make(chan struct{}, 1)
	g.listeners = append(g.listeners, listener)
	return listener
}

// Put writes the objects in their order and guards them from now on, and no others but the definitions: whoever deletes
// one that is not wanted any more does so afterwards. The repairs are what others had changed or
// deleted; that the objects themselves are new ones is none.
//
// Put is not atomic. An object that the API server refuses stays as it was, the ones after it are written nevertheless,
// and the errors come joined, in the order of the objects: a policy that does not fit keeps neither a new scope nor a
// rotated bundle from the webhook configurations. The floor can then be behind the webhooks until a later Put succeeds:
// what only the new floor covers, the webhooks alone refuse, and fail closed. Nothing is let go of meanwhile: what earlier
// objects were guarded stays guarded. Only an API server that does not answer ends it where that happens. What was
// repaired is returned with any error.
func (g *Guard) Put(ctx context.Context, objects []Object) ([]Repair, error) {
	all, err := prepared(objects)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	installed, err := g.anyExists(ctx, all)
	if err != nil {
		return nil, err
	}
	repairs, err := g.putAll(ctx, all, installed)
	if err != nil {
		return repairs, err
	}
	maps.DeleteFunc(g.wanted, func(ref Guarded, guarded *unstructured.Unstructured) bool {
		return !isDefinition(guarded) && !slices.ContainsFunc(all, func(wanted *unstructured.Unstructured) bool { return refOf(wanted) == ref })
	})
	return repairs, nil
}

func (g *Guard) putAll(ctx context.Context, all []*unstructured.Unstructured, installed bool) ([]Repair, error) {
	var repairs []Repair
	var refused []error
	for _, wanted := range all {
		repair, err := g.put(ctx, wanted, installed)
		if repair != nil {
			repairs = append(repairs, *repair)
		}
		if err == nil {
			continue
		}
		refused = append(refused, err)
		if _, answered := errors.AsType[*apierrors.StatusError](err); !answered {
			break // the others would only wait for the same answer
		}
	}
	return repairs, errors.Join(refused...)
}

// put writes one object. Where nothing of the others exists yet, one that is missing is none that was deleted.
func (g *Guard) put(ctx context.Context, wanted *unstructured.Unstructured, installed bool) (*Repair, error) {
	ref := refOf(wanted)
	live, err := g.read(ctx, wanted)
	if err != nil {
		return nil, err
	}
	repair := g.foreign(live, installed, wanted)
	if live == nil || len(differences(wanted, live)) > 0 || !asWritten(live) {
		if err := g.write(ctx, wanted); err != nil {
			return nil, err
		}
	}
	if g.wanted[ref] == nil {
		defer g.tell()
	}
	g.wanted[ref], g.kept[ref] = wanted, true
	return repair, nil
}

// foreign is what others did to the object, against what this process wanted of it last, or else against what some
// manager wrote; nil for nothing.
func (g *Guard) foreign(live *unstructured.Unstructured, installed bool, wanted *unstructured.Unstructured) *Repair {
	ref := refOf(wanted)
	repair := &Repair{Guarded: ref, Noticed: time.Now()}
	before := g.wanted[ref]
	switch {
	case live == nil && (g.kept[ref] || installed):
		repair.Missing = true
	case live == nil:
		return nil
	case before != nil:
		repair.Differences = differences(before, live)
	case !asWritten(live):
		repair.Differences = differences(wanted, live)
	}
	if !repair.Missing && len(repair.Differences) == 0 {
		return nil
	}
	return repair
}

// asWritten is true while nobody has changed what a manager wrote, whatever its version.
func asWritten(live *unstructured.Unstructured) bool {
	digest, err := digestOf(live)
	return err == nil && digest == live.GetAnnotations()[annotationDigest] && len(live.GetOwnerReferences()) == 0
}

// Restore looks at one object and repairs it. It returns nil when there was nothing to repair.
func (g *Guard) Restore(ctx context.Context, ref Guarded) (*Repair, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := g.wanted[ref]
	if wanted == nil {
		return nil, nil
	}
	repair := &Repair{Guarded: ref, Noticed: time.Now()}
	live, err := g.read(ctx, wanted)
	if err != nil {
		return nil, err
	}
	upgrade := false
	if repair.Missing = live == nil; !repair.Missing {
		if leave, err := g.leave(wanted, live); leave || err != nil {
			return nil, err
		}
		if repair.Differences = differences(wanted, live); len(repair.Differences) == 0 {
			g.kept[ref] = true
			return g.createdBefore(repair), nil
		}
		// A definition of an earlier release is brought up to date, which is no repair.
		upgrade = isDefinition(live) && revision(live) < revision(wanted) && !g.kept[ref]
	}
	if err := g.write(ctx, wanted); err != nil {
		return nil, err
	}
	g.kept[ref] = true
	if upgrade {
		return nil, nil
	}
	return repair, nil
}

// leave is true for an object that is not to be repaired: a definition of a newer release. The error says why an object
// that should be cannot.
func (g *Guard) leave(wanted, live *unstructured.Unstructured) (bool, error) {
	if live.GetDeletionTimestamp() != nil {
		return false, fmt.Errorf("%s %w", refOf(live), ErrTerminating)
	}
	if !isDefinition(live) || revision(live) <= revision(wanted) {
		return false, nil
	}
	if lost := needed(wanted, live); len(lost) > 0 {
		return false, fmt.Errorf("%s %w: %v", refOf(live), ErrNewerDefinition, lost)
	}
	return true, nil
}

// createdBefore is the repair of a definition that was created at the start; nil for any other, and nil the second time.
func (g *Guard) createdBefore(repair *Repair) *Repair {
	if !g.created[repair.Guarded] {
		return nil
	}
	delete(g.created, repair.Guarded)
	repair.Missing = true
	return repair
}

// write applies the object, so that its fields are the manager's, and then replaces what others added: entries of lists
// outlive an apply that does not know them, and can make it invalid.
func (g *Guard) write(ctx context.Context, wanted *unstructured.Unstructured) error {
	applyErr := g.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted.DeepCopy()), FieldOwner, client.ForceOwnership)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := g.read(ctx, wanted)
		if err != nil {
			return err
		}
		if live == nil {
			return applyErr // nothing to replace
		}
		if applyErr == nil && len(differences(wanted, live)) == 0 {
			return nil
		}
		return g.Client.Update(ctx, replacement(wanted, live), FieldOwner)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", refOf(wanted), err)
	}
	return nil
}

// replacement keeps of the live object what is not the manager's: labels, annotations and finalizers of others. Its
// resourceVersion makes the update fail when somebody was faster.
func replacement(wanted, live *unstructured.Unstructured) *unstructured.Unstructured {
	next := wanted.DeepCopy()
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	metadata, _, _ := unstructured.NestedMap(live.Object, "metadata")
	next.Object["metadata"] = metadata
	next.SetLabels(joined(labels, wanted.GetLabels()))
	next.SetAnnotations(joined(annotations, wanted.GetAnnotations()))
	if !isDefinition(wanted) {
		next.SetOwnerReferences(nil)
	}
	return next
}

func joined(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		return b
	}
	maps.Copy(all, b)
	return all
}

// read returns nil for an object that does not exist.
func (g *Guard) read(ctx context.Context, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := g.Live.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", refOf(wanted), err)
	}
	return live, nil
}

func (g *Guard) anyExists(ctx context.Context, all []*unstructured.Unstructured) (bool, error) {
	for _, wanted := range all {
		if live, err := g.read(ctx, wanted); live != nil || err != nil {
			return live != nil, err
		}
	}
	return false, nil
}

func (g *Guard) tell() {
	for _, listener := range g.listeners {
		select {
		case listener <- struct{}{}:
		default:
		}
	}
}

// prepared are the objects as they will be read back, each with the digest of what it decides.
func prepared(objects []Object) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, object := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", *object.GetKind(), *object.GetName(), err)
		}
		u := &unstructured.Unstructured{Object: fields}
		digest, err := digestOf(u)
		if err != nil {
			return nil, err
		}
		u.SetAnnotations(joined(u.GetAnnotations(), map[string]string{annotationDigest: digest}))
		all = append(all, u)
	}
	return all, nil
}

func refOf(object *unstructured.Unstructured) Guarded {
	return Guarded{GroupVersionKind: object.GroupVersionKind(), Name: object.GetName()}
}
