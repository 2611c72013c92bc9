package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observer counts the effects of one family from the first API server's watch, so that no answer of anybody counts as
// one, and undoes each at once.
type observer struct {
	family   *family
	sentinel string // that drain writes

	mu     sync.Mutex
	scenes map[string]*scene
	seen   string // resourceVersion of the last event
	cut    error
	marks  int
}

// The observers live as long as the package, and not longer: the API server waits for its watches when it stops.
var (
	observers              = map[*family]*observer{}
	observersMu            sync.Mutex
	observation, unobserve = context.WithCancel(context.Background())
)

// observe starts the family's observer, or returns the one that runs.
func observe(t *testing.T, f *family) *observer {
	t.Helper()
	observersMu.Lock()
	defer observersMu.Unlock()
	if o := observers[f]; o != nil {
		return o
	}
	o := &observer{family: f, sentinel: fmt.Sprintf("sentinel-%d", len(observers)), scenes: map[string]*scene{}}
	must(t, f.object(f.home, o.sentinel))
	list := f.list()
	if err := admin.List(t.Context(), list, client.InNamespace(f.home)); err != nil {
		t.Fatal(err)
	}
	o.seen = list.GetResourceVersion()
	events, err := admin.Watch(observation, list, client.InNamespace(f.home),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() {
			o.take(event)
		}
		o.end(errors.New("the watch was cut"))
	}()
	observers[f] = o
	return o
}

func (o *observer) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = errors.Join(o.cut, err)
}

func (o *observer) take(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok {
		o.end(apierrors.FromObject(event.Object))
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = object.GetResourceVersion()
	s := o.scenes[object.GetName()]
	if s == nil {
		return
	}
	if o.family.effect(event, s.before) && s.live {
		s.effects++
		s.undoing.Go(s.undoEffect)
	}
	s.before = object
}

// drain returns when every event before now has been counted: the watch has passed a write that was made just now.
func (o *observer) drain(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	o.marks++
	mark := o.marks
	o.mu.Unlock()
	object := o.family.object(o.family.home, o.sentinel)
	patch := mergePatch(fmt.Sprintf(`{"metadata":{"annotations":{"acme.example/mark":"%d"}}}`, mark))
	eventually(t, func() error { return admin.Patch(t.Context(), object, patch) })
	eventually(t, func() error { return o.passed(object.GetResourceVersion()) })
}

func (o *observer) passed(resourceVersion string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut != nil {
		return o.cut
	}
	order, err := resourceversion.CompareResourceVersion(o.seen, resourceVersion)
	if err != nil {
		return err
	}
	if order < 0 {
		return fmt.Errorf("the watch is at %s, want %s", o.seen, resourceVersion)
	}
	return nil
}

// undoEffect takes an effect back. A replica that is down cannot keep it from that: people are not asked about.
func (s *scene) undoEffect() {
	var err error
	for range maxTries {
		ctx, cancel := context.WithTimeout(context.Background(), waitAtMost)
		err = s.family.undo(ctx, s.target())
		cancel()
		if err == nil {
			return
		}
		time.Sleep(pause)
	}
	s.observer.end(fmt.Errorf("undo %s: %w", s.name, err))
}
