package manager

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	enforcementcontroller "stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// watchdog keeps what the enforcement is made of, and tells of what it repairs.
func (p *parts) watchdog() (*enforcementcontroller.Watchdog, error) {
	guard, err := enforcement.NewGuard(p.direct, p.mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	all := enforcementcontroller.NewMetrics()
	if err := all.Register(metrics.Registry); err != nil {
		return nil, err
	}
	return &enforcementcontroller.Watchdog{
		Watching: p.direct, Guard: guard,
		Alarm: &enforcementcontroller.Alarm{
			Policies: p.mgr.GetClient(), Recorder: p.mgr.GetEventRecorder("stepbeyond"), Metrics: all, State: p.state,
		},
	}, nil
}
