package onboarding

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

const (
	// maxAccounts bounds the ServiceAccounts that a replica tells apart between two writes.
	maxAccounts = 1024
	// maxFindings bounds the findings of each.
	maxFindings = 64
)

// Counter counts reviews until they are taken. It is ready after NewCounter, for use by many goroutines.
type Counter struct {
	// Metric is what NewMetric returns; the caller registers it.
	Metric *prometheus.CounterVec

	mu       sync.Mutex
	accounts Counted
}

// Counted is what was counted between two takes. An account without a name stands for those of its namespace that were too
// many to tell apart.
type Counted map[Account]*tally

type tally struct {
	counts   v1alpha1.OnboardingCounts
	findings map[Finding]int64
}

// NewMetric is the counter stepbeyond_onboarding_reviews_total{namespace,class,outcome,reason} of one replica. The series
// of a namespace go when it is audited no more.
func NewMetric() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stepbeyond_onboarding_reviews_total",
		Help: "Reviews in namespaces that are only audited, by class and by what would have come of them.",
	}, []string{"namespace", "class", "outcome", "reason"})
}

// NewCounter makes a Counter that has counted nothing.
func NewCounter(metric *prometheus.CounterVec) *Counter {
	return &Counter{Metric: metric, accounts: Counted{}}
}

// Add counts one review, decided for the given reason.
func (c *Counter) Add(r Review, reason policy.Reason) {
	class := r.Class.String()
	if r.Outcome == Undecided {
		class = "" // nobody knows it
	}
	c.Metric.WithLabelValues(r.Account.Namespace, class, string(r.Outcome), string(reason)).Inc()
	one := countsOf(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.of(r.Account)
	add(&t.counts, &one)
	if r.Outcome != WouldAllow {
		t.find(r.Finding, 1)
	}
}

// of is the tally that counts for an account.
func (c *Counter) of(account Account) *tally {
	if c.accounts[account] == nil && len(c.accounts) >= maxAccounts {
		account.Name = ""
	}
	return c.accounts.of(account)
}

func (c Counted) of(account Account) *tally {
	t := c[account]
	if t == nil {
		t = &tally{findings: map[Finding]int64{}}
		c[account] = t
	}
	return t
}

func (t *tally) find(f Finding, count int64) {
	if _, known := t.findings[f]; known || len(t.findings) < maxFindings {
		t.findings[f] += count
	}
}

func (t *tally) join(more *tally) {
	add(&t.counts, &more.counts)
	for finding, count := range more.findings {
		t.find(finding, count)
	}
}

// Take returns what was counted since the last take and begins anew.
func (c *Counter) Take() Counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.accounts
	c.accounts = Counted{}
	return taken
}

// Return counts again what was taken and could not be written.
func (c *Counter) Return(counted Counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for account, back := range counted {
		c.of(account).join(back)
	}
}

func countsOf(r Review) v1alpha1.OnboardingCounts {
	var one v1alpha1.OnboardingCounts
	switch r.Outcome {
	case WouldAllow:
		one.WouldAllow = 1
	case WouldAsk:
		one.WouldAsk = 1
	case WouldRefuse:
		one.WouldRefuse = 1
	default:
		one.Undecided = 1
		return one
	}
	switch r.Class {
	case policy.ClassAuto:
		one.Auto = 1
	case policy.ClassAutoWithDisclosure:
		one.AutoWithDisclosure = 1
	case policy.ClassAsk:
		one.Ask = 1
	case policy.ClassForbidden:
		one.Forbidden = 1
	}
	return one
}

func add(to, more *v1alpha1.OnboardingCounts) {
	to.WouldAllow += more.WouldAllow
	to.WouldAsk += more.WouldAsk
	to.WouldRefuse += more.WouldRefuse
	to.Undecided += more.Undecided
	to.Auto += more.Auto
	to.AutoWithDisclosure += more.AutoWithDisclosure
	to.Ask += more.Ask
	to.Forbidden += more.Forbidden
}
