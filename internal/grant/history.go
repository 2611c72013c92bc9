package grant

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errHistoryGone: the API server no longer has the versions in between, or does not show them to the manager.
var errHistoryGone = errors.New("the history of the object is gone")

// readHistoryFor bounds how long one look into the history waits. What happened before the look is sent at once; only
// what did not happen is waited for, and an admission review cannot wait long.
const readHistoryFor = 300 * time.Millisecond

// history is one object's past, as the API server's watch tells it.
type history struct {
	client    client.WithWatch
	kind      schema.GroupVersionKind
	namespace string
	name      string
}

func (h *history) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(h.kind.GroupVersion().WithKind(h.kind.Kind + "List"))
	events, err := h.client.Watch(ctx, list, client.InNamespace(h.namespace), client.MatchingFields{"metadata.name": h.name}, &client.ListOptions{Raw: &options})
	switch {
	case gone(err):
		return nil, errHistoryGone
	case err != nil:
		return nil, fmt.Errorf("watch %s %s/%s: %w", h.kind.Kind, h.namespace, h.name, err)
	}
	return events, nil
}

// gone tells that the history cannot be read, now or later.
func gone(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

// mark is a resourceVersion of the resource that is current now, for an object that does not exist and has none.
func (h *history) mark(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readHistoryFor)
	defer cancel()
	initial := true
	events, err := h.watch(ctx, metav1.ListOptions{
		SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if err != nil {
		return "", err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return "", historyError(event)
		}
		if object, ok := event.Object.(client.Object); ok && event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			return object.GetResourceVersion(), nil
		}
	}
	return "", fmt.Errorf("watch %s %s/%s: ended before its first state: %w", h.kind.Kind, h.namespace, h.name, context.Cause(ctx))
}

// after is the first version that follows a resourceVersion and that wanted accepts; nil when there is none yet.
func (h *history) after(ctx context.Context, resourceVersion string, wanted func(watch.Event) bool) (*watch.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, readHistoryFor)
	defer cancel()
	events, err := h.watch(ctx, metav1.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Error:
			return nil, historyError(event)
		case watch.Bookmark:
		default:
			if wanted(event) {
				return &event, nil
			}
		}
	}
	if ctx.Err() == nil {
		return nil, fmt.Errorf("watch %s %s/%s: the API server ended it", h.kind.Kind, h.namespace, h.name)
	}
	return nil, nil
}

// past is what a look at the whole history has found.
type past struct {
	// seen: a version that was wanted is there.
	seen bool
	// complete: the history was shown up to a version that is younger than the look itself.
	complete bool
}

// readWholeFor bounds a look at the whole history; the API server sends a bookmark two seconds before it ends a watch.
const readWholeFor = 4 * time.Second

// whole reads the history from a resourceVersion up to now. That nothing was wanted proves something only when it is
// complete: a watch that is silent may be behind.
func (h *history) whole(ctx context.Context, resourceVersion string, wanted func(watch.Event) bool) (past, error) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*readWholeFor {
		return past{}, nil // an admission review cannot wait so long
	}
	now, err := h.mark(ctx)
	if err != nil {
		return past{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readWholeFor)
	defer cancel()
	seconds := int64(readWholeFor/time.Second) - 1
	events, err := h.watch(ctx, metav1.ListOptions{ResourceVersion: resourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return past{}, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, ok := event.Object.(client.Object)
		switch {
		case event.Type == watch.Error:
			return past{}, historyError(event)
		case event.Type != watch.Bookmark && wanted(event):
			return past{seen: true}, nil
		case !ok:
			continue
		}
		if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), now); err == nil && order >= 0 {
			return past{complete: true}, nil
		}
	}
	return past{}, nil
}

func historyError(event watch.Event) error {
	err := apierrors.FromObject(event.Object)
	if gone(err) {
		return errHistoryGone
	}
	return fmt.Errorf("read history: %w", err)
}
