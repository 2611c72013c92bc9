package enforcement

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// Metrics of the enforcement. Only the leader reports them.
type Metrics struct {
	// Proven is stepbeyond_enforcement_proven{enforcer}: 1 while the last canary requests proved the enforcer (webhook
	// or floor) on every API server, 0 otherwise.
	Proven *prometheus.GaugeVec
	// ServerProven is stepbeyond_enforcement_server_proven{address,enforcer}: the same for one API server. A server that
	// is gone has no series.
	ServerProven *prometheus.GaugeVec
	// Repairs is stepbeyond_enforcement_repairs_total{kind,name}: objects that somebody else changed or deleted.
	Repairs *prometheus.CounterVec
	// RepairSeconds is stepbeyond_enforcement_repair_seconds{kind}: from noticing to having written.
	RepairSeconds *prometheus.HistogramVec
}

const (
	labelEnforcer = "enforcer"
	labelKind     = "kind"
)

// NewMetrics makes them without registering them.
func NewMetrics() *Metrics {
	return &Metrics{
		Proven: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stepbeyond_enforcement_proven",
			Help: "1 while the last canary requests proved the enforcer (webhook or floor) on every API server, 0 otherwise. Only the leader reports it.",
		}, []string{labelEnforcer}),
		ServerProven: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stepbeyond_enforcement_server_proven",
			Help: "1 while the last canary requests proved the enforcer on the API server of this address, 0 otherwise. Only the leader reports it.",
		}, []string{"address", labelEnforcer}),
		Repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stepbeyond_enforcement_repairs_total",
			Help: "Objects of the enforcement that somebody else changed or deleted and that were put right.",
		}, []string{labelKind, "name"}),
		RepairSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "stepbeyond_enforcement_repair_seconds",
			Help:    "Seconds from noticing a changed or deleted object of the enforcement to having put it right.",
			Buckets: []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{labelKind}),
	}
}

// Register registers all of them.
func (m *Metrics) Register(registry prometheus.Registerer) error {
	for _, metric := range []prometheus.Collector{m.Proven, m.ServerProven, m.Repairs, m.RepairSeconds} {
		if err := registry.Register(metric); err != nil {
			return fmt.Errorf("register enforcement metric: %w", err)
		}
	}
	return nil
}

func (m *Metrics) proof(proof admission.Proof) {
	const webhook, floor = "webhook", "floor"
	m.Proven.WithLabelValues(webhook).Set(gauge(proof.WebhookProven))
	m.Proven.WithLabelValues(floor).Set(gauge(proof.FloorProven))
	m.ServerProven.Reset()
	for _, server := range proof.Servers {
		m.ServerProven.WithLabelValues(server.Address, webhook).Set(gauge(server.WebhookProven))
		m.ServerProven.WithLabelValues(server.Address, floor).Set(gauge(server.FloorProven))
	}
}

func gauge(proven bool) float64 {
	if proven {
		return 1
	}
	return 0
}
