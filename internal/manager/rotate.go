package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/rotation"
)

var errNotRestored = errors.New("nobody restored the installation's Secret")

// newKeeper loads the installation, or makes it, and signs the first serving certificate.
func newKeeper(ctx context.Context, direct client.Client, options Options) (*rotation.Keeper, error) {
	if err := options.Timing.Validate(); err != nil {
		return nil, err
	}
	hosts, err := options.webhookHosts()
	if err != nil {
		return nil, err
	}
	if err := awaitInstallation(ctx, direct, options.Timing.RestoredWithin()); err != nil {
		return nil, err
	}
	installation, err := certs.LoadInstallation(ctx, direct, direct, systemNamespace, time.Now(), options.Timing.AuthorityLifetime)
	if err != nil {
		return nil, err
	}
	endpoint := enforcement.Endpoint{URL: options.WebhookURL}
	if endpoint.URL == "" {
		endpoint.ServiceNamespace, endpoint.ServiceName = systemNamespace, serviceName
	}
	return rotation.NewKeeper(rotation.Settings{
		Live: direct, Namespace: systemNamespace, Hosts: hosts, Timing: options.Timing, Endpoint: endpoint, Now: time.Now,
	}, installation)
}

// awaitInstallation leaves a deleted Secret to the leader that still knows what it held.
func awaitInstallation(ctx context.Context, direct client.Client, patience time.Duration) error {
	logger := log.FromContext(ctx).WithName("installation").WithValues("secret", systemNamespace+"/"+certs.InstallationSecret)
	waits := false
	lost, err := certs.AwaitInstallation(ctx, direct, systemNamespace, func(ctx context.Context) (bool, error) {
		enforced, err := enforcement.Enforced(ctx, direct)
		if enforced && !waits {
			waits = true
			logger.Info("The Secret is missing and webhook configurations exist: waiting for the leader to restore it", "atMost", patience)
		}
		return enforced, err
	}, patience)
	if err != nil {
		return fmt.Errorf("find the installation: %w", err)
	}
	if lost {
		logger.Error(errNotRestored, "A new installation is made: grants and stamps from before are worthless, and objects of sessions from before "+
			"count as foreign. To keep them, scale the manager to 0, put the Secret back from a backup, and scale it up again")
	}
	return nil
}

// addRotation has every replica say what it serves, and the leader rotate.
func (p *parts) addRotation() error {
	for _, metric := range p.keeper.Metrics() {
		if err := metrics.Registry.Register(metric); err != nil {
			return fmt.Errorf("register certificate metrics: %w", err)
		}
	}
	c := p.mgr.GetClient()
	herald, err := rotation.NewHerald(p.keeper, c)
	if err != nil {
		return err
	}
	if err := p.mgr.AddReadyzCheck("installation", herald.Ready); err != nil {
		return fmt.Errorf("add readiness of the installation: %w", err)
	}
	if err := p.mgr.Add(herald); err != nil {
		return fmt.Errorf("add the replica's herald: %w", err)
	}
	proven := func() bool {
		_, proven := p.state.Proven()
		return proven
	}
	rotator := &rotation.Rotator{Keeper: p.keeper, Client: c, Proven: proven, Recorder: p.mgr.GetEventRecorder("stepbeyond")}
	if err := p.mgr.Add(rotator); err != nil {
		return fmt.Errorf("add the rotator: %w", err)
	}
	return nil
}
