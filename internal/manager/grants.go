package manager

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	enforcementcontroller "stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	"stepbeyond.dev/stepbeyond/internal/controller/permissiongrant"
	"stepbeyond.dev/stepbeyond/internal/managerconfig"
	"stepbeyond.dev/stepbeyond/internal/notify"
)

// newNotifier reads the configuration. One that is not understood keeps the manager from starting: a deployment then keeps
// its old replicas.
func newNotifier(options Options) (*notify.Notifier, error) {
	config, err := managerconfig.Load(options.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	all := notify.NewMetrics()
	if err := all.Register(metrics.Registry); err != nil {
		return nil, err
	}
	return notify.New(config, notify.Secrets{Directory: options.SecretsDirectory}, all, time.Now), nil
}

// recorder also tells people of what must not wait for somebody who reads events.
func (p *parts) recorder() *notify.Recorder {
	return &notify.Recorder{
		EventRecorder: p.mgr.GetEventRecorder("stepbeyond"), Notifier: p.notifier, Scheme: p.mgr.GetScheme(), Now: time.Now,
		Alarms: map[string]managerconfig.Event{
			enforcementcontroller.EventEnforcementLost:   managerconfig.EnforcementLost,
			enforcementcontroller.EventNamespaceReleased: managerconfig.NamespaceLeft,
		},
	}
}

// grants are the controllers of PermissionGrants. What tells people runs beside them.
func (p *parts) grants() ([]interface{ SetupWithManager(ctrl.Manager) error }, error) {
	all := permissiongrant.NewMetrics()
	if err := all.Register(metrics.Registry); err != nil {
		return nil, err
	}
	c := p.mgr.GetClient()
	if err := p.mgr.Add(&permissiongrant.Queue{Client: c, Metrics: all}); err != nil {
		return nil, fmt.Errorf("add the measuring of the queue: %w", err)
	}
	if err := p.mgr.Add(p.notifier); err != nil {
		return nil, fmt.Errorf("add the notifier: %w", err)
	}
	return []interface{ SetupWithManager(ctrl.Manager) error }{
		&permissiongrant.Reconciler{Client: c, Store: p.store, Protocol: p.protocol, Events: p.recorder(), Metrics: all, Now: time.Now},
		&permissiongrant.Notices{Client: c, Live: p.mgr.GetAPIReader(), Notifier: p.notifier, Now: time.Now},
	}, nil
}
