package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"stepbeyond.dev/stepbeyond/policy"
)

// Entries as metrics name them.
const (
	entryEnforce      = "enforce"
	entryOrigin       = "origin"
	entryObjects      = "objects"
	entryObjectsStamp = "objects-stamp"
	entryOnboarding   = "onboarding"
	entryAuthorize    = "authorize"
)

var (
	reviews = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stepbeyond_admission_reviews_total",
		Help: "Admission reviews answered, by entry, class and verdict.",
	}, []string{"entry", "class", "verdict"})
	repeats = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "stepbeyond_grant_repeated_asks_total",
		Help: "Requests of agents that an open question answered already, so that nobody was asked twice.",
	})
	seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "stepbeyond_admission_review_duration_seconds",
		Help:    "Time to answer an admission review, by entry.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15), // 0.1 ms to 1.6 s
	}, []string{"entry"})
)

// RegisterMetrics adds the package's metrics to the manager's registry. It errs when they are there already.
func RegisterMetrics() error {
	for _, collector := range []prometheus.Collector{reviews, repeats, seconds} {
		if err := metrics.Registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

func observe(entry string, d *policy.Decision, took time.Duration) {
	reviews.WithLabelValues(entry, d.Class.String(), string(d.Verdict)).Inc()
	if d.Reason == policy.ReasonPermissionPending && d.Grant != nil && d.Grant.Waiting {
		repeats.Inc()
	}
	seconds.WithLabelValues(entry).Observe(took.Seconds())
}
