// Package controlplane keeps the Secret with the files for the hosts of the control plane: the authorization
// configuration and the static manifests, which hold the scope in literals as the admission configuration does.
package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/trigger"
)

// repairEvery is how long an edited or deleted Secret stays so. The hosts keep their files meanwhile.
const repairEvery = time.Minute

// Files writes the Secret after each change of the policies and of the scope in force. Only the leader does.
type Files struct {
	Client client.Client
	Store  *policystore.Store
	// Scope in force; ok is false while it is not known, and the files stay as they are then.
	Scope func() (scope enforcement.Scope, ok bool)
	// ScopeChanged receives when the scope in force changes.
	ScopeChanged <-chan struct{}
	// Endpoint of the authorization webhook as of now: address, path and trust change when certificates are rotated.
	Endpoint func(ctx context.Context) (enforcement.Endpoint, error)
	// EndpointChanged receives when it may have changed.
	EndpointChanged <-chan struct{}
	// ControlPlane without Scope, Reads, Endpoint and Version.
	ControlPlane enforcement.ControlPlane
}

// +kubebuilder:rbac:groups="",namespace=stepbeyond-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=stepbeyond-system,resources=secrets,resourceNames=stepbeyond-control-plane,verbs=patch

// SetupWithManager registers the controller.
func (r *Files) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("control-plane-files").
		WatchesRawSource(trigger.On(r.Store.Changed(), trigger.One)).
		WatchesRawSource(trigger.On(r.ScopeChanged, trigger.One)).
		WatchesRawSource(trigger.On(r.EndpointChanged, trigger.One)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up control plane files: %w", err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Files) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	snapshot := r.Store.Current()
	scope, known := r.Scope()
	if snapshot == nil || !known {
		return reconcile.Result{}, nil // the first of both is a change
	}
	endpoint, err := r.Endpoint(ctx)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("endpoint of the authorization webhook: %w", err)
	}
	wanted := r.ControlPlane
	wanted.Endpoint = endpoint
	wanted.Scope, wanted.Reads, wanted.Version = scope, snapshot.Reads, snapshot.BaselineVersion
	files, err := wanted.Files()
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("files for the control plane: %w", err))
	}
	secret := corev1.Secret(enforcement.ControlPlaneSecret, enforcement.SystemNamespace).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": "stepbeyond"}).
		WithType("stepbeyond.dev/control-plane").WithData(files)
	if err := r.Client.Apply(ctx, secret, enforcement.FieldOwner, client.ForceOwnership); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply Secret %s: %w", enforcement.ControlPlaneSecret, err)
	}
	return reconcile.Result{RequeueAfter: repairEvery}, nil
}
