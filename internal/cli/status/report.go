package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/pages"
)

const (
	// staleAfter is when a proof says nothing about now; the manager proves every 30 s.
	staleAfter = 90 * time.Second
	// lookBack is how far the queue looks back.
	lookBack = 24 * time.Hour
	// soon is when a question that expires is worth a look.
	soon = 30 * time.Minute
)

// Report is how things are; with -o it is written as it is. What could not be read is omitted and named in NotRead.
type Report struct {
	// Namespace of queue and sessions; empty for all.
	Namespace   string                     `json:"namespace,omitempty"`
	Enforcement *Enforcement               `json:"enforcement,omitempty"`
	Governed    *v1alpha1.GovernedCounts   `json:"governed,omitempty"`
	Sessions    *Sessions                  `json:"sessions,omitempty"`
	Queue       *Queue                     `json:"queue,omitempty"`
	Onboarding  *v1alpha1.OnboardingCounts `json:"onboarding,omitempty"`
	// OnboardingSince is when counting began.
	OnboardingSince *metav1.Time `json:"onboardingSince,omitempty"`
	Attention       []Attention  `json:"attention,omitempty"`
	NotRead         []NotRead    `json:"notRead,omitempty"`

	now time.Time
}

// Enforcement is what the manager has proven.
type Enforcement struct {
	Policies int `json:"policies"`
	// Webhook and Floor in the words of the status; empty when no policy has one yet.
	Webhook       v1alpha1.EnforcementState `json:"webhook,omitempty"`
	Floor         v1alpha1.EnforcementState `json:"floor,omitempty"`
	FloorPolicies int32                     `json:"floorPolicies"`
	// LastProvenTime is the oldest of the policies' last proofs. Omitted: never.
	LastProvenTime *metav1.Time `json:"lastProvenTime,omitempty"`
	// State joins them: InForce, Repairing, Lost, or Stale when the last proof is too old to say anything about now.
	State string `json:"state"`
}

// stale is the state of an enforcement whose last proof is too old.
const stale = "Stale"

// Sessions that have not ended.
type Sessions struct {
	Live      int            `json:"live"`
	Guarantee map[string]int `json:"guarantee,omitempty"`
	Suspended []string       `json:"suspended,omitempty"`
}

// Queue is what waits and what was answered.
type Queue struct {
	Pending int `json:"pending"`
	// OldestTime is when the question that waits longest was asked.
	OldestTime *metav1.Time `json:"oldestTime,omitempty"`
	// SinceTime is the beginning of the time that the counts below are of.
	SinceTime metav1.Time `json:"sinceTime"`
	Approved  int         `json:"approved"`
	Denied    int         `json:"denied"`
	Expired   int         `json:"expired"`
	// MedianAnswerSeconds of what people answered. Omitted: nothing was.
	MedianAnswerSeconds *int64 `json:"medianAnswerSeconds,omitempty"`

	// whole tells that nothing older can be missing, none that there is no grant at all.
	whole, none bool
}

// Attention is one thing that somebody should look at.
type Attention struct {
	Object  string `json:"object"`
	Message string `json:"message"`
	// Command that tells more.
	Command string `json:"command,omitempty"`
}

// NotRead is a kind that could not be read.
type NotRead struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

func (s *seen) report(namespace string, now time.Time) *Report {
	r := &Report{Namespace: namespace, now: now}
	for _, kind := range []string{clusterPolicies, agentPolicies, sessions, grants} {
		if err := s.unreadable[kind]; err != nil {
			r.NotRead = append(r.NotRead, NotRead{Kind: kind, Reason: pages.Reason(err)})
		}
	}
	if s.unreadable[clusterPolicies] == nil {
		r.addPolicies(s.policies.Items)
	}
	for i := range s.own.Items {
		p := &s.own.Items[i]
		r.addCondition("AgentPolicy "+p.Namespace+"/"+p.Name, p.Status.Conditions, v1alpha1.ConditionReady,
			"kubectl -n "+p.Namespace+" describe agentpolicy "+p.Name)
	}
	if s.unreadable[sessions] == nil {
		r.addSessions(s.sessions.Items)
	}
	if s.unreadable[grants] == nil {
		r.addGrants(s.grants.Items)
	}
	return r
}

func (r *Report) addPolicies(policies []v1alpha1.ClusterAgentPolicy) {
	slices.SortFunc(policies, func(a, b v1alpha1.ClusterAgentPolicy) int { return strings.Compare(a.Name, b.Name) })
	e := &Enforcement{Policies: len(policies)}
	r.Enforcement, r.Governed = e, &v1alpha1.GovernedCounts{}
	proven := true
	for i := range policies {
		p := &policies[i]
		if g := p.Status.Governed; g != nil {
			r.Governed.Namespaces += g.Namespaces
			r.Governed.OnboardingNamespaces += g.OnboardingNamespaces
			r.Governed.Users += g.Users
		}
		if of := p.Status.Enforcement; of != nil {
			e.Webhook, e.Floor = worse(e.Webhook, of.Webhook), worse(e.Floor, of.Floor)
			e.FloorPolicies = max(e.FloorPolicies, of.FloorPolicies)
			proven = proven && of.LastProvenTime != nil
			if at := of.LastProvenTime; at != nil && (e.LastProvenTime == nil || at.Before(e.LastProvenTime)) {
				e.LastProvenTime = at
			}
		} else {
			proven = false
		}
		r.addOnboarding(p.Status.Onboarding)
		describe := "kubectl describe clusteragentpolicy " + p.Name
		r.addCondition("ClusterAgentPolicy "+p.Name, p.Status.Conditions, v1alpha1.ConditionReady, describe)
		r.addCondition("ClusterAgentPolicy "+p.Name, p.Status.Conditions, v1alpha1.ConditionEnforcementReady, describe)
		r.addCondition("ClusterAgentPolicy "+p.Name, p.Status.Conditions, v1alpha1.ConditionIdentitiesConfined, "kubectl stepbeyond policy lint -A")
	}
	if !proven {
		e.LastProvenTime = nil
	}
	e.State = e.joined(r.now)
}

// states of the enforcement, the best first.
var states = []v1alpha1.EnforcementState{"", v1alpha1.EnforcementInForce, v1alpha1.EnforcementRepairing, v1alpha1.EnforcementLost}

func worse(a, b v1alpha1.EnforcementState) v1alpha1.EnforcementState {
	if slices.Index(states, a) < slices.Index(states, b) {
		return b
	}
	return a
}

// joined is never better than either half, and what was not proven lately is not in force.
func (e *Enforcement) joined(now time.Time) string {
	state := worse(e.Webhook, e.Floor)
	if state == v1alpha1.EnforcementInForce && (e.LastProvenTime == nil || now.Sub(e.LastProvenTime.Time) > staleAfter) {
		return stale
	}
	return string(state)
}

func (r *Report) addOnboarding(o *v1alpha1.OnboardingReport) {
	if o == nil {
		return
	}
	if r.Onboarding == nil {
		r.Onboarding = &v1alpha1.OnboardingCounts{}
	}
	to, more := r.Onboarding, &o.Total
	to.WouldAllow += more.WouldAllow
	to.WouldAsk += more.WouldAsk
	to.WouldRefuse += more.WouldRefuse
	to.Undecided += more.Undecided
	to.Auto += more.Auto
	to.AutoWithDisclosure += more.AutoWithDisclosure
	to.Ask += more.Ask
	to.Forbidden += more.Forbidden
	if r.OnboardingSince == nil || o.CountedSinceTime.Before(r.OnboardingSince) {
		r.OnboardingSince = &o.CountedSinceTime
	}
}

// addCondition tells of a condition that is not True; one that is missing says nothing.
func (r *Report) addCondition(object string, conditions []metav1.Condition, kind v1alpha1.ConditionType, command string) {
	c := meta.FindStatusCondition(conditions, string(kind))
	if c != nil && c.Status != metav1.ConditionTrue {
		r.Attention = append(r.Attention, Attention{Object: object, Message: string(kind) + " is " + string(c.Status) + ", " + c.Reason + ": " + c.Message, Command: command})
	}
}

func (r *Report) addSessions(all []v1alpha1.AgentSession) {
	r.Sessions = &Sessions{}
	for i := range all {
		s := &all[i]
		if s.Status.State == v1alpha1.SessionEnded {
			continue
		}
		r.Sessions.Live++
		if r.Sessions.Guarantee == nil {
			r.Sessions.Guarantee = map[string]int{}
		}
		r.Sessions.Guarantee[cmp.Or(string(s.Status.Guarantee), notComputed)]++
		if s.Status.State == v1alpha1.SessionSuspended {
			r.Sessions.Suspended = append(r.Sessions.Suspended, s.Namespace+"/"+s.Name)
		}
	}
	slices.Sort(r.Sessions.Suspended)
}

// notComputed stands for the guarantee of a session that no controller has seen yet.
const notComputed = "not computed yet"
