package enforcement

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// staleAfter is three missed proofs: what was proven longer ago says nothing about now.
const staleAfter = 3 * proveEvery

// Observation is what is known about the enforcement at one moment. It is immutable.
type Observation struct {
	// Scope in force in the API server; its lists are sorted.
	Scope admission.Scope
	// Forbidden are the rules that the floor enforces, as POLICY/RULE, sorted.
	Forbidden []string
	// Problem is why the wanted scope is not the one in force; nil when it is.
	Problem error
	// Proof of the last canary requests; its time is zero before the first answer.
	Proof admission.Proof
	// Failure is what was not proven; nil when everything was.
	Failure error
	// Repairing is set while the configuration is written again after a failure.
	Repairing bool
	// LastProven is when everything was proven last; zero for never since the start.
	LastProven time.Time
	// Repair is the last one of the last hour; nil for none.
	Repair *Repair
}

// Repair is what had to be put right in the enforcement, and when it was.
type Repair struct {
	admission.Repair
	Done time.Time
}

// Unproven is the failure of an observation whose proof is older than the repair of an enforcer.
type Unproven struct{ Repair *Repair }

func (u *Unproven) Error() string { return u.Repair.String() + "; it is not proven again yet" }

// Known tells whether Scope is the one in force: also while a wanted one is refused and the last one stays.
func (o Observation) Known() bool { return o.Problem == nil || scopeReason(o.Problem) != "" }

func (o Observation) proven() bool { return !o.Proof.Time.IsZero() && o.Failure == nil }

// with is the observation after another proof.
func (o Observation) with(proof admission.Proof, failure error) Observation {
	o.Proof, o.Failure = proof, failure
	if failure == nil {
		o.LastProven = proof.Time
	}
	return o
}

// State holds the newest observation for whoever depends on it. The zero value knows nothing yet.
type State struct {
	current atomic.Pointer[Observation]

	mu        sync.Mutex
	listeners []chan struct{}
	repairs   []chan struct{}
	repair    *Repair
}

// Current returns the newest observation.
func (s *State) Current() Observation {
	if o := s.current.Load(); o != nil {
		return *o
	}
	return Observation{}
}

// Proven returns when the canary requests were answered last and whether webhook and floor refused all of them. The
// time is zero before the first answer since the start; an answer older than 90 s proves nothing any more.
func (s *State) Proven() (time.Time, bool) {
	o := s.Current()
	return o.Proof.Time, o.proven() && time.Since(o.Proof.Time) < staleAfter
}

// EnforcesServiceAccount tells whether the scope in force covers the ServiceAccount.
func (s *State) EnforcesServiceAccount(namespace, name string) bool {
	scope := s.Current().Scope
	_, listed := slices.BinarySearch(scope.Namespaces, namespace)
	return listed && !slices.Contains(scope.Exempt, admission.ServiceAccount{Namespace: namespace, Name: name})
}

// EnforcesUser tells whether the scope in force covers the user.
func (s *State) EnforcesUser(name string) bool { return slices.Contains(s.Current().Scope.Users, name) }

// Changed returns a channel that receives when the scope in force, a problem or the outcome of the proof changes, and
// not with every proof. A slow reader misses repetitions, never the last.
func (s *State) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	listener := make(chan struct{}, 1)
	s.listeners = append(s.listeners, listener)
	return listener
}

// Repaired returns a channel that receives after each repair.
func (s *State) Repaired() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	listener := make(chan struct{}, 1)
	s.repairs = append(s.repairs, listener)
	return listener
}

// repaired takes back what was proven before the repair.
func (s *State) repaired(repair admission.Repair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repair = &Repair{Repair: repair, Done: time.Now()}
	s.set(s.Current())
	tell(s.repairs)
}

func (s *State) publish(next Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(next)
}

func (s *State) set(next Observation) {
	before := s.Current()
	next = next.after(s.repair)
	s.current.Store(&next)
	if !same(&before, &next) {
		tell(s.listeners)
	}
}

// repairTold is how long a repair stays in the status.
const repairTold = time.Hour

// after is the observation as the repair leaves it: a proof that began before it proves nothing of what was repaired.
func (o Observation) after(repair *Repair) Observation {
	o.Repair = nil
	if repair == nil || time.Since(repair.Done) > repairTold {
		return o
	}
	o.Repair = repair
	if !repair.ofEnforcer() || o.Proof.Time.IsZero() || o.Proof.Time.After(repair.Done) {
		return o
	}
	o.Failure, o.Repairing = &Unproven{Repair: repair}, true
	if repair.ofWebhook() {
		o.Proof.WebhookProven = false
	} else {
		o.Proof.FloorProven = false
	}
	return o
}

// ofEnforcer is false for a custom resource definition, whose loss opens nothing.
func (r *Repair) ofEnforcer() bool { return r.Group == admissionregistrationv1.GroupName }

func (r *Repair) ofWebhook() bool { return strings.HasSuffix(r.Kind, "WebhookConfiguration") }

func tell(listeners []chan struct{}) {
	for _, listener := range listeners {
		select {
		case listener <- struct{}{}:
		default:
		}
	}
}

// same compares what others act on. The text of a failure is left out, because it may differ every time.
func same(a, b *Observation) bool {
	return a.Proof.Time.IsZero() == b.Proof.Time.IsZero() && a.proven() == b.proven() && a.Repairing == b.Repairing &&
		a.Proof.WebhookProven == b.Proof.WebhookProven && a.Proof.FloorProven == b.Proof.FloorProven &&
		a.Proof.FloorPolicies == b.Proof.FloorPolicies &&
		slices.Equal(a.Forbidden, b.Forbidden) && (a.Problem == nil) == (b.Problem == nil) && a.Repair == b.Repair &&
		slices.Equal(a.Scope.Namespaces, b.Scope.Namespaces) &&
		slices.Equal(a.Scope.Users, b.Scope.Users) && slices.Equal(a.Scope.Exempt, b.Scope.Exempt)
}
