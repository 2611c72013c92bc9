package permissiongrant

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Metrics of the queue of questions. Only the leader reports them. Namespaces and groups that are more than their bounds
// share the label value "_other", which no namespace can have.
type Metrics struct {
	// Pending is stepbeyond_grants_pending{namespace}.
	Pending *prometheus.GaugeVec
	// OldestPending is stepbeyond_grants_oldest_pending_timestamp_seconds{namespace}: when the oldest open question was asked.
	OldestPending *prometheus.GaugeVec
	// Decisions is stepbeyond_grant_decisions_total{group,verdict}: answers of people. A person who counted for several
	// groups is counted for each; group is empty when no requirement names one.
	Decisions *prometheus.CounterVec
	// AnswerSeconds is stepbeyond_grant_answer_seconds{group,verdict}: from asking to the answer that decided.
	AnswerSeconds *prometheus.HistogramVec

	groups bounded
}

const (
	labelNamespace = "namespace"
	labelGroup     = "group"
	labelVerdict   = "verdict"

	// other stands for what is beyond a bound.
	other         = "_other"
	maxNamespaces = 100
	maxGroups     = 100
)

// NewMetrics makes them without registering them.
func NewMetrics() *Metrics {
	return &Metrics{
		Pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stepbeyond_grants_pending", Help: "Questions that wait for people. Only the leader reports it.",
		}, []string{labelNamespace}),
		OldestPending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stepbeyond_grants_oldest_pending_timestamp_seconds", Help: "When the oldest question that waits was asked. Only the leader reports it.",
		}, []string{labelNamespace}),
		Decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stepbeyond_grant_decisions_total", Help: "Answers of people, by the approver group that they counted for.",
		}, []string{labelGroup, labelVerdict}),
		AnswerSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stepbeyond_grant_answer_seconds", Help: "Seconds from a question to the answer that decided it.",
			Buckets: []float64{10, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 57600, 86400},
		}, []string{labelGroup, labelVerdict}),
		groups: bounded{most: maxGroups},
	}
}

// Register registers all of them.
func (m *Metrics) Register(registry prometheus.Registerer) error {
	for _, metric := range []prometheus.Collector{m.Pending, m.OldestPending, m.Decisions, m.AnswerSeconds} {
		if err := registry.Register(metric); err != nil {
			return fmt.Errorf("register metric of grants: %w", err)
		}
	}
	return nil
}

func (m *Metrics) decision(d *v1alpha1.GrantDecision) {
	for _, group := range m.groupsOf(d) {
		m.Decisions.WithLabelValues(group, string(d.Verdict)).Inc()
	}
}

// answer counts the answer that decided, which is the last one: none follows it.
func (m *Metrics) answer(g *v1alpha1.PermissionGrant, reason v1alpha1.ConditionReason) {
	n := len(g.Spec.Decisions)
	if n == 0 || reason != v1alpha1.ReasonRequirementsMet && reason != v1alpha1.ReasonApproverDenied {
		return
	}
	d := &g.Spec.Decisions[n-1]
	if d.DecidedTime == nil {
		return
	}
	for _, group := range m.groupsOf(d) {
		m.AnswerSeconds.WithLabelValues(group, string(d.Verdict)).Observe(d.DecidedTime.Sub(g.CreationTimestamp.Time).Seconds())
	}
}

func (m *Metrics) groupsOf(d *v1alpha1.GrantDecision) []string {
	if len(d.ApproverGroups) == 0 {
		return []string{""}
	}
	groups := make([]string, 0, len(d.ApproverGroups))
	for _, group := range d.ApproverGroups {
		groups = append(groups, m.groups.label(group))
	}
	return groups
}

// bounded gives the first values their own label and all others one.
type bounded struct {
	most int

	mu    sync.Mutex
	known map[string]bool
}

func (b *bounded) label(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[string]bool{}
	}
	if !b.known[value] && len(b.known) >= b.most {
		return other
	}
	b.known[value] = true
	return value
}
