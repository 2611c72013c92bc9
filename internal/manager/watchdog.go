package manager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	enforcementcontroller "stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// newGuard also creates custom resource definitions that are missing, without which nothing of the manager can start.
func newGuard(ctx context.Context, direct client.Client, live client.Reader) (*enforcement.Guard, error) {
	guard, err := enforcement.NewGuard(direct, live)
	if err != nil {
		return nil, err
	}
	created, err := guard.CreateDefinitions(ctx)
	for _, definition := range created {
		log.FromContext(ctx).Info("Created a missing definition; if it was deleted, every object of the kind is gone with it",
			"definition", definition.Name)
	}
	return guard, err
}

// watchdog keeps what the enforcement is made of, and tells of what it repairs.
func (p *parts) watchdog() (*enforcementcontroller.Watchdog, error) {
	all := enforcementcontroller.NewMetrics()
	if err := all.Register(metrics.Registry); err != nil {
		return nil, err
	}
	return &enforcementcontroller.Watchdog{
		Watching: p.direct, Guard: p.guard,
		Alarm: &enforcementcontroller.Alarm{
			Policies: p.mgr.GetClient(), Recorder: p.mgr.GetEventRecorder("stepbeyond"), Metrics: all, State: p.state,
		},
	}, nil
}
