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
	return nil, nil
}

func historyError(event watch.Event) error {
	err := apierrors.FromObject(event.Object)
	if gone(err) {
		return errHistoryGone
	}
	return fmt.Errorf("read history: %w", err)
}
