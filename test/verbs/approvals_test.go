package verbs_test

import (
	"context"
	"fmt"
	"testing"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Proves G-2, G-5, K-1.
func TestEveryVerbOfEveryKindIsDoneOnceWhenApproved(t *testing.T) {
	all, x := kinds(t), newTable()
	t.Run("kinds", func(t *testing.T) {
		for _, k := range all {
			t.Run(k.title(), func(t *testing.T) {
				t.Parallel()
				a := <-free
				defer func() { free <- a }()
				everyVerb(t, &trial{
					subject: &subject{kind: k, base: k.object(a.namespace)}, agent: a, table: x, questions: map[string]question{},
				})
			})
		}
	})
	x.print(t, all)
	t.Run("what the manager may not read is Unknown in the end", func(t *testing.T) {
		for _, key := range x.unknown {
			if err := eventually(t.Context(), func() error {
				g := &v1alpha1.PermissionGrant{}
				if err := admin.Get(t.Context(), key, g); err != nil {
					return err
				}
				if g.Status.State != v1alpha1.GrantExhausted || g.Status.Uses[0].Outcome != v1alpha1.UseUnknown {
					return fmt.Errorf("%s is %s with a use that is %s", key, g.Status.State, g.Status.Uses[0].Outcome)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	})
}

func everyVerb(t *testing.T, w *trial) {
	t.Helper()
	var err error
	if w.readable, err = w.kind.readable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.furnish(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the next kind finds nothing of this one
		if err := w.remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	verbs := verbsOf(t, w.subject)
	if !w.readable { // each verb below gets an object of its own
		w.alike(t, verbs)
	}
	for _, v := range verbs {
		w.table.set(w.kind, v.name, cellFailed)
		t.Run(v.name, func(t *testing.T) { w.try(t, v) })
	}
}
