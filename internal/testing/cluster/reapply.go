package cluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Reapply makes the cluster policy, with Rules, and the profile where they are missing, as GitOps does; what is there stays.
func (c *Cluster) Reapply(ctx context.Context) error {
	for _, object := range governance() {
		if policy, ok := object.(*v1alpha1.ClusterAgentPolicy); ok {
			policy.Spec.Rules = c.Rules
		}
		// Our own webhook answers for our kinds; until it is there again, nobody can write them.
		if err := eventually(ctx, func() error {
			object.SetResourceVersion("")
			if err := c.Admin.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
