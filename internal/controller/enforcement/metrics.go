package enforcement

import (
	"github.com/prometheus/client_golang/prometheus"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// NewMetric is the gauge stepbeyond_enforcement_proven{enforcer}: 1 while the last canary request proved the enforcer
// (webhook or floor), 0 otherwise. Only the leader reports it.
func NewMetric() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stepbeyond_enforcement_proven",
		Help: "1 while the last canary request proved the enforcer (webhook or floor), 0 otherwise. Only the leader reports it.",
	}, []string{"enforcer"})
}

func (r *Scope) report(proof admission.Proof) {
	for enforcer, proven := range map[string]bool{"webhook": proof.WebhookProven, "floor": proof.FloorProven} {
		value := 0.0
		if proven {
			value = 1
		}
		r.Metric.WithLabelValues(enforcer).Set(value)
	}
}
