package enforcement

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

const (
	// EventEnforcementRepaired is a Warning: somebody changed or deleted an object of the enforcement; it was put right.
	EventEnforcementRepaired = "EnforcementRepaired"
	// EventEnforcementNotRepaired is a Warning: an object of the enforcement is not as it should be, and stays so.
	EventEnforcementNotRepaired = "EnforcementNotRepaired"

	actionCreate  = "Create"
	actionReplace = "Replace"
	actionLeave   = "Leave"

	// fightsFrom is the wait before the next repair from which on somebody else is known to insist.
	fightsFrom = 2 * time.Second
)

// Alarm tells people of repairs: an event on every ClusterAgentPolicy, a log line, metrics, and the state, from which
// status and sessions learn that what was proven before counts no more.
type Alarm struct {
	// Policies lists ClusterAgentPolicies.
	Policies client.Reader
	Recorder events.EventRecorder
	Metrics  *Metrics
	State    *State
}

// repaired tells of one repair. wait is how long the object's next repair has to wait, 0 for not at all.
func (a *Alarm) repaired(ctx context.Context, repair admission.Repair, wait time.Duration) {
	took := time.Since(repair.Noticed)
	a.Metrics.Repairs.WithLabelValues(repair.Kind, repair.Name).Inc()
	a.Metrics.RepairSeconds.WithLabelValues(repair.Kind).Observe(took.Seconds())
	a.State.repaired(repair)
	log.FromContext(ctx).Info("Repaired the enforcement", "kind", repair.Kind, "object", repair.Name,
		"missing", repair.Missing, "differences", repair.Differences, "seconds", took.Seconds())

	action := actionReplace
	if repair.Missing {
		action = actionCreate
	}
	sentence := repair.String() + "."
	if wait >= fightsFrom {
		sentence = "Somebody changes it again and again, so the next repair waits " + wait.Round(time.Second).String() + ": " + sentence
	}
	a.tell(ctx, repair.Guarded, EventEnforcementRepaired, action, sentence)
}

// left tells of an object that stays as it is.
func (a *Alarm) left(ctx context.Context, object admission.Guarded, why error) {
	log.FromContext(ctx).Error(why, "The enforcement is not repaired", "kind", object.Kind, "object", object.Name)
	a.tell(ctx, object, EventEnforcementNotRepaired, actionLeave, why.Error())
}

// tell records an event on every policy, and on the object itself where there is none, as after the definition of the
// policies was deleted.
func (a *Alarm) tell(ctx context.Context, object admission.Guarded, reason, action, sentence string) {
	about := &unstructured.Unstructured{}
	about.SetGroupVersionKind(object.GroupVersionKind)
	about.SetName(object.Name)
	var regarding []runtime.Object
	var list v1alpha1.ClusterAgentPolicyList
	if err := a.Policies.List(ctx, &list); err != nil {
		log.FromContext(ctx).Error(err, "The policies cannot be told of a repair")
	}
	for i := range list.Items {
		regarding = append(regarding, &list.Items[i])
	}
	if len(regarding) == 0 {
		regarding = append(regarding, about)
	}
	for _, one := range regarding {
		a.Recorder.Eventf(one, about, corev1.EventTypeWarning, reason, action, "%s", note(sentence))
	}
}
