package enforcement

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// servedWithin bounds the wait until the API server serves a definition that was created.
	servedWithin = 30 * time.Second
	// servedInterval is short against the second that it usually takes.
	servedInterval = 100 * time.Millisecond
)

// CreateDefinitions creates the custom resource definitions that do not exist and returns when they are served: without
// them no replica can start, so every one does this before there is a leader. What exists is left to Restore, which
// then also tells of what was created here.
func (g *Guard) CreateDefinitions(ctx context.Context) ([]Guarded, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var created []Guarded
	for ref, wanted := range g.wanted {
		live, err := g.read(ctx, wanted)
		if err != nil {
			return created, err
		}
		if !isDefinition(wanted) || live != nil {
			continue
		}
		if err := g.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted.DeepCopy()), FieldOwner, client.ForceOwnership); err != nil {
			return created, fmt.Errorf("create %s: %w", ref, err)
		}
		g.created[ref] = true
		created = append(created, ref)
	}
	for _, ref := range created {
		if err := g.awaitServed(ctx, g.wanted[ref]); err != nil {
			return created, fmt.Errorf("%s is not served: %w", ref, err)
		}
	}
	return created, nil
}

func (g *Guard) awaitServed(ctx context.Context, wanted *unstructured.Unstructured) error {
	return wait.PollUntilContextTimeout(ctx, servedInterval, servedWithin, true, func(ctx context.Context) (bool, error) {
		live, err := g.read(ctx, wanted)
		if live == nil || err != nil {
			return false, err
		}
		// They are null, which is no slice, until the API server has looked at the definition.
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, condition := range conditions {
			fields, _ := condition.(map[string]any)
			if fields["type"] == "Established" && fields["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
}
