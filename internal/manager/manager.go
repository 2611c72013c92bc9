package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/rotation"
)

const (
	systemNamespace = enforcement.SystemNamespace
	serviceName     = "stepbeyond-webhook"
	leaderElection  = "stepbeyond-manager"
	// stopWithin lets admission reviews that are under way end.
	stopWithin = 10 * time.Second
)

// Run runs the manager until options.ShutdownDelay after the end of the context. The error says what kept it from starting
// or made it stop.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	if err := options.validate(); err != nil {
		return err
	}
	mgr, keeper, err := newManager(ctx, config, options)
	if err != nil {
		return err
	}
	var ending drain
	if err := wire(ctx, mgr, options, keeper, &ending); err != nil {
		return err
	}
	serving, stop := ending.delayed(ctx, options.ShutdownDelay)
	defer stop()
	if err := mgr.Start(serving); err != nil {
		return fmt.Errorf("run manager: %w", err)
	}
	return nil
}

// newManager makes the controller-runtime manager with a webhook server that serves what the installation's Secret says.
func newManager(ctx context.Context, config *rest.Config, options Options) (ctrl.Manager, *rotation.Keeper, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, nil, err
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("make client: %w", err)
	}
	keeper, err := newKeeper(ctx, direct, options)
	if err != nil {
		return nil, nil, err
	}
	server, err := webhookServer(options, keeper)
	if err != nil {
		return nil, nil, err
	}
	grace := stopWithin
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: {Transform: slimPod}, &v1alpha1.AgentSession{}: {Transform: slimSessions()},
			},
		},
		Metrics:                 metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:  options.HealthAddress,
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        leaderElection,
		LeaderElectionNamespace: systemNamespace,
		GracefulShutdownTimeout: &grace,
		WebhookServer:           server,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, nil, fmt.Errorf("add health check: %w", err)
	}
	return mgr, keeper, nil
}

func webhookServer(options Options, keeper *rotation.Keeper) (webhook.Server, error) {
	host, port, err := options.webhookListener()
	if err != nil {
		return nil, err
	}
	requireClient, err := options.clientAuthentication()
	if err != nil {
		return nil, err
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS13
		// One review per connection at a time costs less over HTTP/1.1, and the API server keeps connections alive.
		c.NextProtos = []string{"http/1.1"}
		c.GetCertificate = keeper.GetCertificate
		requireClient(c)
	}}}), nil
}

// username is who the manager is to the API server: its own writes of our kinds are not sent back to it.
func username(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", fmt.Errorf("ask the API server for the manager's own username: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
