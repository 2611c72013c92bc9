// Package trigger turns "something changed" into reconcile requests.
package trigger

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Requests lists what has to be looked at again.
type Requests func(context.Context) ([]reconcile.Request, error)

// On enqueues the requests after each receive from changed.
func On(changed <-chan struct{}, requests Requests) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed:
				}
				list, err := requests(ctx)
				if err != nil {
					log.FromContext(ctx).Error(err, "A change reaches the objects it concerns with their next event only")
				}
				for _, request := range list {
					queue.Add(request)
				}
			}
		}()
		return nil
	})
}

// One is a single request without a name, for controllers that look at everything at once.
func One(context.Context) ([]reconcile.Request, error) { return []reconcile.Request{{}}, nil }

// Every requests each object of the list's kind; list is a sample and stays empty.
func Every(reader client.Reader, list client.ObjectList) Requests {
	return func(ctx context.Context) ([]reconcile.Request, error) {
		list := list.DeepCopyObject().(client.ObjectList)
		if err := reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
		var requests []reconcile.Request
		err := meta.EachListItem(list, func(object runtime.Object) error {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object.(client.Object))})
			return nil
		})
		return requests, err
	}
}
