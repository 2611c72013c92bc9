package identity_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/policy"
)

// below makes a session a child of the session with that name.
func below(parent string) func(*v1alpha1.AgentSession) {
	return func(s *v1alpha1.AgentSession) {
		s.Spec.Parent = &v1alpha1.ParentSession{Name: parent, UID: types.UID("uid-" + parent)}
	}
}

func withState(state v1alpha1.SessionState) func(*v1alpha1.AgentSession) {
	return func(s *v1alpha1.AgentSession) { s.Status.State = state }
}

func until(deadline time.Time) func(*v1alpha1.AgentSession) {
	return func(s *v1alpha1.AgentSession) { s.Spec.DeadlineTime = metav1.NewTime(deadline) }
}

func changed(name string, changes ...func(*v1alpha1.AgentSession)) *v1alpha1.AgentSession {
	return bySession(name, func(s *v1alpha1.AgentSession) {
		s.Spec.UserName = "ana@acme.example"
		for _, change := range changes {
			change(s)
		}
	})
}

func values(sessions []*v1alpha1.AgentSession) []v1alpha1.AgentSession {
	var list []v1alpha1.AgentSession
	for _, s := range sessions {
		list = append(list, *s)
	}
	return list
}

func TestTheEndAndTheSuspensionOfAnAncestorComeDown(t *testing.T) {
	type standing struct {
		State v1alpha1.SessionState
		By    string
		In    time.Duration // until the deadline
	}
	for _, tt := range []struct {
		name string
		// above are the parent "b" and its parent "c" of session "a".
		parent, grandparent *v1alpha1.AgentSession
		own                 func(*v1alpha1.AgentSession)
		want                standing
	}{
		{"all act", changed("b", below("c")), changed("c"), nil, standing{v1alpha1.SessionActive, "a", time.Hour}},
		{"the parent is suspended", changed("b", below("c"), withState(v1alpha1.SessionSuspended)), changed("c"), nil, standing{v1alpha1.SessionSuspended, "b", time.Hour}},
		{"the parent's parent is suspended", changed("b", below("c")), changed("c", withState(v1alpha1.SessionSuspended)), nil, standing{v1alpha1.SessionSuspended, "c", time.Hour}},
		{"the session itself is suspended", changed("b"), nil, withState(v1alpha1.SessionSuspended), standing{v1alpha1.SessionSuspended, "a", time.Hour}},
		{"the parent has ended", changed("b", withState(v1alpha1.SessionEnded)), nil, nil, standing{v1alpha1.SessionEnded, "b", time.Hour}},
		{"the deadline of the parent's parent has passed", changed("b", below("c")), changed("c", until(now)), nil, standing{v1alpha1.SessionEnded, "c", time.Hour}},
		{"an end is more than a suspension", changed("b", below("c"), withState(v1alpha1.SessionSuspended)), changed("c", withState(v1alpha1.SessionEnded)), nil, standing{v1alpha1.SessionEnded, "c", time.Hour}},
		{"the parent is gone", nil, nil, nil, standing{v1alpha1.SessionEnded, "b", time.Hour}},
		{"the parent was made anew under its name", changed("b", func(s *v1alpha1.AgentSession) { s.UID = "anew" }), nil, nil, standing{v1alpha1.SessionEnded, "b", time.Hour}},
		{"the parent's parent is gone", changed("b", below("c")), nil, nil, standing{v1alpha1.SessionEnded, "c", time.Hour}},
		{"the parent's deadline was moved before the session's", changed("b", until(now.Add(time.Minute))), nil, nil, standing{v1alpha1.SessionActive, "a", time.Minute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &reader{}
			for _, s := range []*v1alpha1.AgentSession{tt.parent, tt.grandparent} {
				if s != nil {
					r.sessions = append(r.sessions, s)
				}
			}
			child := changed("a", below("b"))
			if tt.own != nil {
				tt.own(child)
			}
			got, err := identity.StandingOf(child, identity.Through(t.Context(), r, "checkout"), now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, standing{got.State, got.By, got.Deadline.Sub(now)}); diff != "" {
				t.Errorf("standing (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves F-1.
func TestAnAncestorThatCannotBeReadIsAnError(t *testing.T) {
	away := errors.New("the API server is away")
	got, err := identity.StandingOf(changed("a", below("b")), identity.Through(t.Context(), &reader{err: away}, "checkout"), now)
	if !errors.Is(err, away) {
		t.Errorf("standing %+v and error %v, want the reader's", got, err)
	}
}

func TestAFamilyIsEverySessionUnderOneRoot(t *testing.T) {
	all := []*v1alpha1.AgentSession{
		changed("root"), changed("left", below("root")), changed("right", below("root")), changed("leaf", below("left")),
		changed("other"), changed("others-child", below("other")), changed("stray", below("gone")),
	}
	for name, want := range map[string][]types.UID{
		"root": {"uid-root", "uid-left", "uid-right", "uid-leaf"}, "leaf": {"uid-root", "uid-left", "uid-right", "uid-leaf"},
		"other": {"uid-other", "uid-others-child"}, "stray": {"uid-stray"},
	} {
		wanted := map[types.UID]bool{}
		for _, uid := range want {
			wanted[uid] = true
		}
		for _, s := range all {
			if s.Name != name {
				continue
			}
			if diff := cmp.Diff(wanted, identity.Family(values(all), s)); diff != "" {
				t.Errorf("family of %s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// written marks the pod as made from a template that the session wrote.
func written(session string) func(*reader) {
	return func(r *reader) {
		r.pods[0].Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: "checkout/" + session}
	}
}

func both(changes ...func(*reader)) func(*reader) {
	return func(r *reader) {
		for _, change := range changes {
			change(r)
		}
	}
}

func has(sessions ...*v1alpha1.AgentSession) func(*reader) {
	return func(r *reader) { r.sessions = append(r.sessions, sessions...) }
}

// Proves F-1, G-3: lineage gives a child, and never a fresh session.
func TestAPodThatAnAgentWroteHasAChildOfTheWritersSession(t *testing.T) {
	none := func(reason policy.Reason) found { return found{policy.SessionMissing, reason, "", ""} }
	over := found{policy.SessionEnded, policy.ReasonSessionEnded, "", ""}
	derived := found{policy.SessionActive, "", "checkout/web-deplo-uidwr", ""}
	writer := func(changes ...func(*v1alpha1.AgentSession)) *v1alpha1.AgentSession {
		return changed("writer", append([]func(*v1alpha1.AgentSession){ofRoot("writers-uid")}, changes...)...)
	}
	few := func(most int32) func(*v1alpha1.AgentSession) {
		return func(s *v1alpha1.AgentSession) { s.Spec.Authority.Budgets = &v1alpha1.Budgets{MaxChildSessions: &most} }
	}
	account := func(name string) func(*reader) {
		return func(r *reader) { r.pods[0].Spec.ServiceAccountName = name }
	}
	as := func(name string) func(*authenticationv1.UserInfo) {
		return func(info *authenticationv1.UserInfo) { info.Username = "system:serviceaccount:checkout:" + name }
	}
	runResolve(t, []resolveCase{
		{name: "derived while the object does not exist", cached: both(written("writer"), has(writer())), want: derived},
		{name: "the child itself", cached: both(written("writer"), has(writer(), changed("child", below("writer"), ofRoot("deploy-uid")))), want: found{policy.SessionActive, "", "checkout/child", "uid-child"}},
		{name: "not the fresh session of the same workload", cached: both(written("writer"), has(writer(), changed("own", ofRoot("deploy-uid")))), want: derived, room: 9},
		{name: "not the session of every pod of the ServiceAccount", cached: both(written("writer"), has(writer(), changed("all"))), want: derived, room: 9},
		{name: "not a child of somebody else", cached: both(written("writer"), has(writer(), changed("child", below("other"), ofRoot("deploy-uid")))), want: derived, room: 9},
		{name: "the writer's own session, where the agent wrote its own workload", cached: both(written("own"), has(changed("own", ofRoot("deploy-uid")))), want: found{policy.SessionActive, "", "checkout/own", "uid-own"}},
		{name: "a child, where the writer's session is that of every pod of the ServiceAccount", cached: both(written("writer"), has(changed("writer"))), want: derived},
		{name: "the writer is suspended", cached: both(written("writer"), has(writer(withState(v1alpha1.SessionSuspended)))), want: found{policy.SessionSuspended, policy.ReasonSuspended, "checkout/web-deplo-uidwr", ""}, detail: "session writer, above this one, is suspended"},
		{name: "the writer's session has ended", cached: both(written("writer"), has(writer(withState(v1alpha1.SessionEnded)))), want: over, detail: "session writer has ended"},
		{name: "a session above the writer's has ended", cached: both(written("writer"), has(writer(below("top")), changed("top", until(now)))), want: over, detail: "session top has ended"},
		{name: "the child exists and the writer's session has ended", cached: both(written("writer"), has(writer(until(now)), changed("child", below("writer"), ofRoot("deploy-uid")))), want: over, detail: "session writer has ended, and session child with it"},
		{name: "the child has ended, and gets no second start", cached: both(written("writer"), has(writer(), changed("child", below("writer"), ofRoot("deploy-uid"), withState(v1alpha1.SessionEnded)))), want: over, detail: "session child has ended"},
		{name: "the writer's session is gone", cached: written("writer"), want: none(policy.ReasonNoSession), detail: "session checkout/writer is not here"},
		{
			name: "the writer's session is in another namespace", want: none(policy.ReasonNoSession), detail: "session payments/writer is not here",
			cached: both(func(r *reader) {
				r.pods[0].Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: "payments/writer"}
			}, has(changed("writer"), changed("writer", func(s *v1alpha1.AgentSession) { s.Namespace = "payments" }))),
		},
		{name: "the writer may have no children", cached: both(written("writer"), has(writer(few(0)))), want: none(policy.ReasonNoSession), detail: "session writer has 0 of 0 child sessions"},
		{name: "the writer has as many children as it may", cached: both(written("writer"), has(writer(few(1)), changed("child", below("writer"), ofRoot("x")))), want: none(policy.ReasonNoSession), detail: "session writer has 1 of 1 child sessions"},
		{name: "children of children count", cached: both(written("writer"), has(writer(below("top")), changed("top", few(1)))), want: none(policy.ReasonNoSession), detail: "session top has 1 of 1 child sessions"},
		{name: "a child that has ended does not count", cached: both(written("writer"), has(writer(few(1)), changed("child", below("writer"), ofRoot("x"), withState(v1alpha1.SessionEnded)))), want: derived},
		{
			name: "under ServiceAccount default, which has no template", cached: both(written("writer"), account("default"), has(writer())), want: derived,
			caller: as("default"),
		},
		{
			name: "under ServiceAccount default, and nobody's agent wrote it", cached: account("default"), want: none(policy.ReasonNoSession), detail: "no session template names ServiceAccount default",
			caller: as("default"),
		},
		{
			name: "under a ServiceAccount of other software", cached: both(written("writer"), account("deployer"), has(writer())), want: none(policy.ReasonNoSession), detail: "no session template names ServiceAccount deployer",
			caller: as("deployer"),
		},
		{
			name: "under a ServiceAccount whose template has nothing in common with the writer", want: none(policy.ReasonNoSession), detail: "have nothing in common",
			cached: both(written("writer"), has(writer(func(s *v1alpha1.AgentSession) { s.Spec.Authority.Stages = []v1alpha1.Stage{v1alpha1.StagePublish} }))),
		},
		{
			name: "after more ancestors than a child may have", want: none(policy.ReasonNoSession), detail: "sessions stand above it already",
			cached: both(written("g8"), func(r *reader) {
				r.sessions = append(r.sessions, changed("g0"))
				for i := 1; i < 9; i++ {
					r.sessions = append(r.sessions, changed(fmt.Sprintf("g%d", i), below(fmt.Sprintf("g%d", i-1))))
				}
			}),
		},
	})
}

// earlierPod is session old, of another pod of Deployment web.
func earlierPod(changes ...func(*v1alpha1.AgentSession)) *v1alpha1.AgentSession {
	return changed("old", append([]func(*v1alpha1.AgentSession){func(s *v1alpha1.AgentSession) {
		s.Labels = map[string]string{v1alpha1.LabelRootOwner: "deploy-uid"}
		s.Spec.Identity.PodName, s.Spec.Identity.PodUID = "older", "older-uid"
	}}, changes...)...)
}

// Proves G-3, F-1 for a profile whose sessions follow pods: a pod that comes back is no way out.
func TestTheNextPodOfAWorkloadTakesOverWhatAPersonHasStopped(t *testing.T) {
	because := func(reason v1alpha1.ConditionReason) func(*v1alpha1.AgentSession) {
		return func(s *v1alpha1.AgentSession) {
			s.Status.State = v1alpha1.SessionEnded
			s.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.ConditionReady), Status: metav1.ConditionFalse, Reason: string(reason)}}
		}
	}
	fresh := found{policy.SessionActive, "", "checkout/web-1-abcde-podui", ""}
	over := found{policy.SessionEnded, policy.ReasonSessionEnded, "", ""}
	for _, tt := range []resolveCase{
		{name: "it has its own session", cached: has(), want: fresh},
		{name: "also after one whose pod went", cached: has(earlierPod(because(v1alpha1.ReasonOwnerGone))), want: fresh},
		{name: "beside one that works", cached: has(earlierPod()), want: fresh},
		{name: "and beside a suspended one of another workload", cached: has(earlierPod(withState(v1alpha1.SessionSuspended), func(s *v1alpha1.AgentSession) {
			s.Labels[v1alpha1.LabelRootOwner] = "another"
		})), want: fresh},
		{name: "not after one that is suspended", cached: has(earlierPod(withState(v1alpha1.SessionSuspended))), want: over, detail: "session old of an earlier pod of this workload is suspended"},
		{name: "not after one that a person ended", cached: has(earlierPod(because(v1alpha1.ReasonEnded))), want: over, detail: "session old of an earlier pod of this workload has ended"},
		{name: "not after one of the whole workload that is suspended, whoever wrote the pod", cached: func(r *reader) {
			has(earlierPod(withState(v1alpha1.SessionSuspended), func(s *v1alpha1.AgentSession) {
				s.Labels, s.Spec.Identity.PodName, s.Spec.Identity.PodUID = nil, "", ""
				s.Spec.Identity.ServiceAccountName = "another"
				s.Spec.Identity.RootOwner = &v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "deploy-uid"}
			}))(r)
			r.pods[0].Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: "checkout/thief"}
		}, want: over, detail: "session old of an earlier pod of this workload is suspended"},
		{name: "and stays what it is when it rewrites its own workload", cached: func(r *reader) {
			has(earlierPod(because(v1alpha1.ReasonOwnerGone)))(r)
			r.pods[0].Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: "checkout/old"}
		}, want: fresh},
		{name: "not after one whose deadline has passed", cached: has(earlierPod(until(now))), want: over, detail: "session old of an earlier pod of this workload has ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cached := &reader{pods: []*corev1.Pod{agentPod()}, owners: []*metav1.PartialObjectMetadata{replicaSet()}}
			tt.cached(cached)
			policies := snapshotFor(t, 9, func(s *v1alpha1.AgentPolicySpec) {
				s.SessionTemplates[0].Lifetime = v1alpha1.SessionLifetimePod
			})
			got, err := (&identity.Resolver{Cached: cached, Live: &reader{}}).Resolve(t.Context(), caller(nil), policies, now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, found{got.View.State, got.View.StateReason, got.Key(), got.View.UID}); diff != "" {
				t.Errorf("resolved (-want +got):\n%s\ndetail: %s", diff, got.View.StateDetail)
			}
		})
	}
}
