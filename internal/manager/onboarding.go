package manager

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/onboarding"
	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/webhook"
)

// onboarding counts on every replica what would be decided in namespaces that are only audited.
func (p *parts) onboarding() (admission.Handler, error) {
	counter := onboarding.NewCounter(onboarding.NewMetric())
	if err := metrics.Registry.Register(counter.Metric); err != nil {
		return nil, fmt.Errorf("register onboarding metric: %w", err)
	}
	writer := &onboarding.Writer{Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Store: p.store, Counter: counter}
	if err := p.mgr.Add(writer); err != nil {
		return nil, fmt.Errorf("add the writer of onboarding reports: %w", err)
	}
	return &webhook.Onboarding{
		Decider: &webhook.Enforce{
			Store: p.store, Sessions: p.sessions, Stamper: p.stamper, Now: time.Now,
			// What it remembers of pods that go must not count where deletions are refused.
			Origins: &origin.Finder{Live: p.mgr.GetAPIReader(), Mapper: p.mgr.GetRESTMapper(), Stamper: p.stamper},
		},
		Counter: counter,
	}, nil
}
