package enforcement

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

type queue = workqueue.TypedRateLimitingInterface[admission.Guarded]

// watch starts a watch for each guarded object, and for those that join later. One object each, by name: that is all that
// the manager's role allows, and a selector by label would lose who takes the label away.
func (w *Watchdog) watch(ctx context.Context, q queue) error {
	changed := w.Guard.Changed()
	go func() {
		watched := map[admission.Guarded]bool{}
		for {
			for _, object := range w.Guard.Guarded() {
				if !watched[object] {
					watched[object] = true
					w.start(ctx, object, q)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
	return nil
}

// start watches metadata: every change of content is a new resourceVersion, and what changed is read when it counts.
func (w *Watchdog) start(ctx context.Context, object admission.Guarded, q queue) {
	list := func() *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(object.GroupVersion().WithKind(object.Kind + "List"))
		return list
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, object.Name)
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found := list()
			if err := w.Watching.List(ctx, found, &client.ListOptions{Raw: &options, FieldSelector: only}); err != nil {
				return nil, fmt.Errorf("list %s: %w", object, err)
			}
			return found, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watching, err := w.Watching.Watch(ctx, list(), &client.ListOptions{Raw: &options, FieldSelector: only})
			if err != nil {
				return nil, fmt.Errorf("watch %s: %w", object, err)
			}
			return watching, nil
		},
	}
	bell := &bell{ring: func() {
		w.notice(object)
		q.Add(object)
	}}
	reflector := cache.NewReflectorWithOptions(listWatch, &metav1.PartialObjectMetadata{}, bell, cache.ReflectorOptions{Name: object.String()})
	go reflector.RunWithContext(ctx)
}

// bell is a store that keeps nothing and tells that something happened. A list is news too: it may lack the object.
type bell struct{ ring func() }

func (b *bell) Add(any) error    { return b.tell() }
func (b *bell) Update(any) error { return b.tell() }
func (b *bell) Delete(any) error { return b.tell() }
func (b *bell) Resync() error    { return nil }

func (b *bell) Replace([]any, string) error { return b.tell() }

func (b *bell) tell() error {
	b.ring()
	return nil
}
