package release

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

const (
	// managerName of the Deployment and of the leader's Lease.
	managerName = "stepbeyond-manager"
	// renewedWithin is longer than a leader waits between two renewals, 2 s.
	renewedWithin = 4 * time.Second
)

// checkDead refuses while a manager runs or is about to be started: it would write again what is removed.
func checkDead(ctx context.Context, c client.Client) error {
	key := client.ObjectKey{Namespace: enforcement.SystemNamespace, Name: managerName}
	var deployment appsv1.Deployment
	switch err := c.Get(ctx, key, &deployment); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read Deployment %s: %w", key, err)
	case err == nil && (deployment.Spec.Replicas == nil || *deployment.Spec.Replicas > 0):
		return alive(fmt.Sprintf("Deployment %s keeps it running", key))
	}
	var pods corev1.PodList
	labels := client.MatchingLabels{"app.kubernetes.io/name": "stepbeyond", "app.kubernetes.io/component": "manager"}
	if err := c.List(ctx, &pods, client.InNamespace(key.Namespace), labels); err != nil {
		return fmt.Errorf("list the manager's Pods: %w", err)
	}
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			return alive(fmt.Sprintf("Pod %s/%s is %s", key.Namespace, pods.Items[i].Name, phase))
		}
	}
	return checkLease(ctx, c, key)
}

// checkLease looks for a leader. By the clock first, and twice when that says nothing: clocks differ.
func checkLease(ctx context.Context, c client.Client, key client.ObjectKey) error {
	lease, held, err := readLease(ctx, c, key)
	if err != nil || !held {
		return err
	}
	leads := fmt.Sprintf("%s renews Lease %s", *lease.Spec.HolderIdentity, key)
	if d := lease.Spec.LeaseDurationSeconds; d != nil && time.Since(lease.Spec.RenewTime.Time) < time.Duration(*d)*time.Second {
		return alive(leads)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(renewedWithin):
	}
	later, held, err := readLease(ctx, c, key)
	if err != nil || !held || later.Spec.RenewTime.Equal(lease.Spec.RenewTime) {
		return err
	}
	return alive(leads)
}

func readLease(ctx context.Context, c client.Client, key client.ObjectKey) (*coordinationv1.Lease, bool, error) {
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, key, lease); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, false, fmt.Errorf("read Lease %s: %w", key, err)
		}
		return nil, false, nil
	}
	holder := lease.Spec.HolderIdentity
	return lease, holder != nil && *holder != "" && lease.Spec.RenewTime != nil, nil
}

func alive(how string) error {
	return fmt.Errorf(`a manager is alive (%s) and would write everything again; nothing was removed. Stop it and what starts it, a GitOps controller too, wait 15 s, and run this again:
  kubectl scale deployment %s -n %s --replicas=0`, how, managerName, enforcement.SystemNamespace)
}
