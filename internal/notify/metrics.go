package notify

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of deliveries. Only the leader reports them.
type Metrics struct {
	// Sent is stepbeyond_notifications_sent_total{endpoint,event}: messages that the endpoint took.
	Sent *prometheus.CounterVec
	// Failed is stepbeyond_notifications_failed_total{endpoint,event}: deliveries that failed; each is tried again.
	Failed *prometheus.CounterVec
	// Dropped is stepbeyond_notifications_dropped_total{endpoint,event}: notices that had no room or were too old. Those about
	// grants that are still open come again.
	Dropped *prometheus.CounterVec
	// Queued is stepbeyond_notifications_queued{endpoint}: notices that wait.
	Queued *prometheus.GaugeVec
}

const (
	labelEndpoint = "endpoint"
	labelEvent    = "event"
)

// NewMetrics makes them without registering them.
func NewMetrics() *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stepbeyond_notifications_" + name, Help: help}, []string{labelEndpoint, labelEvent})
	}
	return &Metrics{
		Sent:    counter("sent_total", "Messages that an endpoint took."),
		Failed:  counter("failed_total", "Deliveries that failed; each is tried again."),
		Dropped: counter("dropped_total", "Notices that had no room in the queue or waited a day; those about open grants come again."),
		Queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stepbeyond_notifications_queued", Help: "Notices that wait for an endpoint.",
		}, []string{labelEndpoint}),
	}
}

// Register registers all of them.
func (m *Metrics) Register(registry prometheus.Registerer) error {
	for _, metric := range []prometheus.Collector{m.Sent, m.Failed, m.Dropped, m.Queued} {
		if err := registry.Register(metric); err != nil {
			return fmt.Errorf("register metric of notifications: %w", err)
		}
	}
	return nil
}
