// Package pages reads lists of any length in pages, as kubectl does.
package pages

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// size of a page is kubectl's.
const size = 500

// Read lists everything into an empty list. Pages that the API server has forgotten meanwhile are read anew, all at once.
// An error is the API server's own.
func Read(ctx context.Context, c client.Reader, list client.ObjectList, where ...client.ListOption) error {
	var items []runtime.Object
	for next := ""; ; {
		page, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return fmt.Errorf("%T is no list", list)
		}
		err := c.List(ctx, page, append([]client.ListOption{client.Limit(size), client.Continue(next)}, where...)...)
		if next != "" && apierrors.IsResourceExpired(err) {
			return c.List(ctx, list, where...)
		}
		if err != nil {
			return err
		}
		found, err := meta.ExtractList(page)
		if err != nil {
			return fmt.Errorf("read a page of %T: %w", list, err)
		}
		items = append(items, found...)
		if next = page.GetContinue(); next == "" {
			return meta.SetList(list, items)
		}
	}
}

// Reason is an error in few words: of a refusal by RBAC that it is one, because its sentence is about the caller.
func Reason(err error) string {
	if apierrors.IsForbidden(err) {
		return "you may not read it"
	}
	return err.Error()
}
