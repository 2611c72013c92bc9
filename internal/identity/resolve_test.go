package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

var now = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// reader serves pods, owners and sessions. err is what it answers instead.
type reader struct {
	pods     []*corev1.Pod
	owners   []*metav1.PartialObjectMetadata
	sessions []*v1alpha1.AgentSession
	err      error
}

func (r *reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	switch into := into.(type) {
	case *corev1.Pod:
		for _, pod := range r.pods {
			if client.ObjectKeyFromObject(pod) == key {
				pod.DeepCopyInto(into)
				return nil
			}
		}
	case *v1alpha1.AgentSession:
		for _, session := range r.sessions {
			if client.ObjectKeyFromObject(session) == key {
				session.DeepCopyInto(into)
				return nil
			}
		}
	case *metav1.PartialObjectMetadata:
		for _, owner := range r.owners {
			if owner.GroupVersionKind() == into.GroupVersionKind() && client.ObjectKeyFromObject(owner) == key {
				owner.DeepCopyInto(into)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List answers by the field that the caller selects, as an index does.
func (r *reader) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	if r.err != nil {
		return r.err
	}
	var selected client.ListOptions
	selected.ApplyOptions(options)
	list := into.(*v1alpha1.AgentSessionList)
	for _, session := range r.sessions {
		id := &session.Spec.Identity
		fields := map[string]string{identity.IndexServiceAccount: id.ServiceAccountName, identity.IndexUser: id.UserName}
		matches := selected.FieldSelector == nil
		if !matches {
			requirement := selected.FieldSelector.Requirements()[0]
			matches = fields[requirement.Field] == requirement.Value
		}
		if session.Namespace == selected.Namespace && matches {
			list.Items = append(list.Items, *session.DeepCopy())
		}
	}
	return nil
}

// snapshot governs namespace checkout, where ServiceAccount agent has a template, and one user.
func snapshot(t *testing.T) *policystore.Snapshot { return snapshotFor(t, 2) }

// snapshotFor has a profile that allows that many live sessions.
func snapshotFor(t *testing.T, sessions int32, changes ...func(*v1alpha1.AgentPolicySpec)) *policystore.Snapshot {
	t.Helper()
	cluster := v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u1"}}
	cluster.Spec.BaselineVersion = "v1"
	cluster.Spec.Governed.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}}
	cluster.Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: "robot@acme.example", SessionNamespace: "checkout"}}
	cluster.Spec.Profiles = []v1alpha1.ProfileBinding{{Name: "standard", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementEnforce}}
	profile := v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: enforcement.SystemNamespace, Name: "standard", UID: "u2"}}
	shared := template()
	shared.Name, shared.ServiceAccountName, shared.User = "shared", "shared", v1alpha1.TemplateUser{Source: v1alpha1.UserSourcePodAnnotation}
	profile.Spec.SessionTemplates = []v1alpha1.SessionTemplate{template(), shared}
	profile.Spec.Caps = &v1alpha1.Caps{MaxSessions: &sessions}
	for _, change := range changes {
		change(&profile.Spec)
	}
	built, err := policystore.Build(policystore.Input{
		Cluster: []v1alpha1.ClusterAgentPolicy{cluster}, Policies: []v1alpha1.AgentPolicy{profile},
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Labels: map[string]string{v1alpha1.LabelProfile: "standard"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func template() v1alpha1.SessionTemplate {
	return v1alpha1.SessionTemplate{
		Name: "agent", ServiceAccountName: "agent", Lifetime: v1alpha1.SessionLifetimeWorkload, MaxAgeSeconds: 3600,
		User: v1alpha1.TemplateUser{Source: v1alpha1.UserSourceFixed, Name: "ana@acme.example"},
		Authority: v1alpha1.Authority{
			Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal},
		},
	}
}

// agentPod runs under ServiceAccount agent and is owned by ReplicaSet web-1 of Deployment web.
func agentPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "checkout", Name: "web-1-abcde", UID: "pod-uid",
			OwnerReferences: []metav1.OwnerReference{owned("apps/v1", "ReplicaSet", "web-1", "rs-uid")},
		},
		Spec: corev1.PodSpec{ServiceAccountName: "agent"},
	}
}

func owned(apiVersion, kind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &yes}
}

func owner(apiVersion, kind, name string, uid types.UID, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: name, UID: uid, OwnerReferences: owners},
	}
}

// replicaSet is the owner of agentPod.
func replicaSet() *metav1.PartialObjectMetadata {
	return owner("apps/v1", "ReplicaSet", "web-1", "rs-uid", owned("apps/v1", "Deployment", "web", "deploy-uid"))
}

func bySession(name string, change func(*v1alpha1.AgentSession)) *v1alpha1.AgentSession {
	s := &v1alpha1.AgentSession{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: name, UID: types.UID("uid-" + name)}}
	s.Spec.Identity = v1alpha1.SessionIdentity{Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "agent"}
	s.Spec.DeadlineTime = metav1.NewTime(now.Add(time.Hour))
	s.Spec.Authority = template().Authority
	if change != nil {
		change(s)
	}
	return s
}

func ofRoot(uid types.UID) func(*v1alpha1.AgentSession) {
	return func(s *v1alpha1.AgentSession) {
		s.Spec.Identity.RootOwner = &v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: uid}
	}
}

// caller is agentPod's ServiceAccount with the pod's own token.
func caller(change func(*authenticationv1.UserInfo)) identity.Caller {
	info := authenticationv1.UserInfo{
		Username: "system:serviceaccount:checkout:agent",
		Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/credential-id": {"JTI=1"},
			"authentication.kubernetes.io/pod-name":      {"web-1-abcde"},
			"authentication.kubernetes.io/pod-uid":       {"pod-uid"},
		},
	}
	if change != nil {
		change(&info)
	}
	return identity.Caller{UserInfo: info}
}

func without(key string) func(*authenticationv1.UserInfo) {
	return func(info *authenticationv1.UserInfo) { delete(info.Extra, "authentication.kubernetes.io/"+key) }
}

func user(name string) func(*authenticationv1.UserInfo) {
	return func(info *authenticationv1.UserInfo) {
		*info = authenticationv1.UserInfo{Username: name, Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"X509SHA256=1"}}}
	}
}

// found is what a resolution comes to.
type found struct {
	State   policy.SessionState
	Reason  policy.Reason
	Session string
	UID     string
}

type resolveCase struct {
	name   string
	caller func(*authenticationv1.UserInfo)
	cached func(*reader)
	live   *reader
	want   found
	detail string // a part of the state's detail
	// room is how many live sessions the namespace may have; 0 means 2.
	room int32
}

func runResolve(t *testing.T, cases []resolveCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			cached := &reader{pods: []*corev1.Pod{agentPod()}, owners: []*metav1.PartialObjectMetadata{replicaSet()}}
			if test.cached != nil {
				test.cached(cached)
			}
			live := test.live
			if live == nil {
				live = &reader{}
			}
			resolver := identity.Resolver{Cached: cached, Live: live}
			got, err := resolver.Resolve(t.Context(), caller(test.caller), snapshotFor(t, max(test.room, 2)), now)
			if err != nil {
				t.Fatal(err)
			}
			view := found{State: got.View.State, Reason: got.View.StateReason, Session: got.Key(), UID: got.View.UID}
			if diff := cmp.Diff(test.want, view); diff != "" {
				t.Errorf("resolved (-want +got):\n%s\ndetail: %s", diff, got.View.StateDetail)
			}
			if !strings.Contains(got.View.StateDetail, test.detail) {
				t.Errorf("detail %q does not have %q", got.View.StateDetail, test.detail)
			}
			if got.View.Username != caller(test.caller).Username {
				t.Errorf("username %q is not the caller's", got.View.Username)
			}
		})
	}
}

// Proves F-1: a caller without exactly one session has none, and the reason says why.
func TestACallerWithoutExactlyOneSessionHasNone(t *testing.T) {
	runResolve(t, []resolveCase{
		{name: "a token without a credential-id, as of an impersonated identity", caller: without("credential-id"), want: found{policy.SessionMissing, policy.ReasonCredentialUnbound, "", ""}},
		{name: "a token that is bound to no pod", caller: without("pod-name"), want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "not bound to a pod"},
		{
			name: "two values where one belongs are none", want: found{policy.SessionMissing, policy.ReasonCredentialUnbound, "", ""},
			caller: func(info *authenticationv1.UserInfo) {
				info.Extra["authentication.kubernetes.io/credential-id"] = authenticationv1.ExtraValue{"a", "b"}
			},
		},
		{name: "a pod that is gone", cached: func(r *reader) { r.pods = nil }, want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "no longer exists"},
		{name: "another pod of the same name", cached: func(r *reader) { r.pods[0].UID = "other" }, want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "no longer exists"},
		{
			name: "a pod of another ServiceAccount", cached: func(r *reader) { r.pods[0].Spec.ServiceAccountName = "deployer" },
			want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "another ServiceAccount",
		},
		{
			name: "a pod whose template an agent of an unknown session wrote", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "written by an agent",
			cached: func(r *reader) {
				r.pods[0].Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: "checkout/other"}
			},
		},
		{
			name: "a ServiceAccount that no template names", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "no session template names ServiceAccount batch",
			caller: func(info *authenticationv1.UserInfo) { info.Username = "system:serviceaccount:checkout:batch" },
			cached: func(r *reader) { r.pods[0].Spec.ServiceAccountName = "batch" },
		},
		{
			name: "a pod that was taken out of its workload", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "taken out of its workload",
			cached: func(r *reader) { r.pods[0].GenerateName, r.pods[0].OwnerReferences = "web-1-", nil },
		},
		{
			name: "a pod whose ReplicaSet was taken from its Deployment", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "taken out of its workload",
			cached: func(r *reader) {
				r.owners[0].OwnerReferences, r.owners[0].Labels = nil, map[string]string{"pod-template-hash": "7d4b9"}
			},
		},
		{
			name: "a pod whose ReplicaSet is gone", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "taken out of its workload",
			cached: func(r *reader) { r.owners = nil },
		},
		{
			name: "a pod that is being deleted and never had a session", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "is being deleted",
			cached: func(r *reader) { r.pods[0].DeletionTimestamp = &metav1.Time{Time: now} },
		},
		{
			name: "a pod that does not say whose work it does", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "whose work it does",
			caller: func(info *authenticationv1.UserInfo) { info.Username = "system:serviceaccount:checkout:shared" },
			cached: func(r *reader) { r.pods[0].Spec.ServiceAccountName = "shared" },
		},
		{
			name: "a workload whose session's name another workload has", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "belongs to another workload",
			cached: func(r *reader) { r.sessions = []*v1alpha1.AgentSession{bySession("web-deplo", ofRoot("deploy-2"))} },
		},
		{
			name: "one more workload than the namespace may have sessions", want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "2 of 2 sessions",
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", ofRoot("other")), bySession("b", ofRoot("another"))}
			},
		},
		{
			name: "two sessions that cover the pod", want: found{policy.SessionAmbiguous, policy.ReasonSessionAmbiguous, "", ""}, detail: "sessions a and b",
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", ofRoot("deploy-uid")), bySession("b", nil)}
			},
		},
		{
			name: "a session whose deadline has passed gets no fresh start from the template", want: found{policy.SessionEnded, policy.ReasonSessionEnded, "", ""}, detail: "session a has ended",
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", func(s *v1alpha1.AgentSession) { s.Spec.DeadlineTime = metav1.NewTime(now) })}
			},
		},
		{
			name: "a session whose end was recorded", want: found{policy.SessionEnded, policy.ReasonSessionEnded, "", ""},
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", func(s *v1alpha1.AgentSession) { s.Status.State = v1alpha1.SessionEnded })}
			},
		},
		{name: "a user that no cluster policy lists", caller: user("eve@acme.example"), want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "lists this user"},
		{name: "a listed user without a session", caller: user("robot@acme.example"), want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""}, detail: "no session of type User"},
		{
			name: "a session of type ServiceAccount covers no user of the same name", caller: user("robot@acme.example"), want: found{policy.SessionMissing, policy.ReasonNoSession, "", ""},
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", func(s *v1alpha1.AgentSession) { s.Spec.Identity.UserName = "robot@acme.example" })}
			},
		},
	})
}

func TestACallerHasItsOneSession(t *testing.T) {
	active := func(name string) found { return found{policy.SessionActive, "", "checkout/" + name, "uid-" + name} }
	runResolve(t, []resolveCase{
		{name: "derived from the template while the object does not exist", want: found{policy.SessionActive, "", "checkout/web-deplo", ""}},
		{
			name: "the session of the workload", want: active("a"),
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", ofRoot("deploy-uid")), bySession("b", ofRoot("other"))}
			},
		},
		{
			name: "the session of the pod", want: active("a"),
			cached: func(r *reader) {
				of := func(name string, uid types.UID) func(*v1alpha1.AgentSession) {
					return func(s *v1alpha1.AgentSession) { s.Spec.Identity.PodName, s.Spec.Identity.PodUID = name, uid }
				}
				r.sessions = []*v1alpha1.AgentSession{bySession("a", of("web-1-abcde", "pod-uid")), bySession("b", of("web-1-abcde", "older"))}
			},
		},
		{name: "the session of the ServiceAccount's pods", want: active("a"), cached: func(r *reader) { r.sessions = []*v1alpha1.AgentSession{bySession("a", nil)} }},
		{
			name: "one that has ended beside one that has not", want: active("b"),
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", func(s *v1alpha1.AgentSession) { s.Status.State = v1alpha1.SessionEnded }), bySession("b", nil)}
			},
		},
		{
			name: "sessions that have ended do not count against the cap", want: found{policy.SessionActive, "", "checkout/web-deplo", ""},
			cached: func(r *reader) {
				ended := func(s *v1alpha1.AgentSession) {
					ofRoot("other")(s)
					s.Status.State = v1alpha1.SessionEnded
				}
				r.sessions = []*v1alpha1.AgentSession{bySession("a", ended), bySession("b", ended), bySession("c", ofRoot("another"))}
			},
		},
		{
			name: "sessions of another namespace do not count", want: found{policy.SessionActive, "", "checkout/web-deplo", ""},
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", func(s *v1alpha1.AgentSession) { s.Namespace = "payments" })}
			},
		},
		{
			name: "a suspended session is found as such", want: found{policy.SessionSuspended, policy.ReasonSuspended, "checkout/a", "uid-a"},
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", func(s *v1alpha1.AgentSession) { s.Status.State = v1alpha1.SessionSuspended })}
			},
		},
		{
			name: "the session of a listed user", caller: user("robot@acme.example"), want: active("a"),
			cached: func(r *reader) {
				r.sessions = []*v1alpha1.AgentSession{bySession("a", func(s *v1alpha1.AgentSession) {
					s.Spec.Identity = v1alpha1.SessionIdentity{Type: v1alpha1.IdentityUser, UserName: "robot@acme.example"}
				})}
			},
		},
		{
			name: "a pod and an owner that the cache does not have yet are read live", want: found{policy.SessionActive, "", "checkout/web-deplo", ""},
			cached: func(r *reader) { r.pods, r.owners = nil, nil },
			live:   &reader{pods: []*corev1.Pod{agentPod()}, owners: []*metav1.PartialObjectMetadata{replicaSet()}},
		},
		{
			name: "a pod that the cache still has under its older UID is read live", want: found{policy.SessionActive, "", "checkout/web-deplo", ""},
			cached: func(r *reader) { r.pods[0].UID = "older" }, live: &reader{pods: []*corev1.Pod{agentPod()}},
		},
	})
}

func TestTheViewIsTheSessions(t *testing.T) {
	cached := &reader{pods: []*corev1.Pod{agentPod()}, owners: []*metav1.PartialObjectMetadata{replicaSet()}, sessions: []*v1alpha1.AgentSession{
		bySession("a", func(s *v1alpha1.AgentSession) { s.Status.Epoch = 3 }),
	}}
	got, err := (&identity.Resolver{Cached: cached, Live: &reader{}}).Resolve(t.Context(), caller(nil), snapshot(t), now)
	if err != nil {
		t.Fatal(err)
	}
	want := policy.SessionView{
		State: policy.SessionActive, Namespace: "checkout", Name: "a", UID: "uid-a", Epoch: 3, Username: "system:serviceaccount:checkout:agent",
		Authority: policy.Authority{
			Stages: []policy.Stage{policy.StageExecute}, Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}, Namespaces: []string{"checkout"},
		},
		Deadline: now.Add(time.Hour),
	}
	if diff := cmp.Diff(want, got.View); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if got.Pod == nil || got.Pod.UID != "pod-uid" {
		t.Errorf("pod = %v, want the token's", got.Pod)
	}
}

// Proves F-1: what cannot be read is an error, never a session and never none.
func TestAnAPIServerThatDoesNotAnswerIsAnError(t *testing.T) {
	away := errors.New("the API server is away")
	for name, resolver := range map[string]identity.Resolver{
		"the cache": {Cached: &reader{err: away}, Live: &reader{pods: []*corev1.Pod{agentPod()}}},
		"live":      {Cached: &reader{}, Live: &reader{err: away}},
		"the owner": {Cached: &reader{pods: []*corev1.Pod{agentPod()}}, Live: &reader{err: away}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolver.Resolve(t.Context(), caller(nil), snapshot(t), now)
			if !errors.Is(err, away) {
				t.Errorf("error = %v, want the reader's", err)
			}
			if got.Session != nil || got.View.State == policy.SessionActive {
				t.Errorf("resolved %s beside the error", got.Key())
			}
		})
	}
}

func TestRootOwner(t *testing.T) {
	for _, test := range []struct {
		name   string
		owner  *metav1.OwnerReference
		owners []*metav1.PartialObjectMetadata
		want   v1alpha1.RootOwner
		// released: the pod was made for a workload that it no longer hangs on.
		released bool
	}{
		{"a pod without a controller is its own", nil, nil, v1alpha1.RootOwner{Kind: "Pod", Name: "web-1-abcde", UID: "pod-uid"}, false},
		{"a ReplicaSet leads to its Deployment", ptr(owned("apps/v1", "ReplicaSet", "web-1", "rs-uid")), []*metav1.PartialObjectMetadata{replicaSet()}, v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "deploy-uid"}, false},
		{"a ReplicaSet of its own is the root", ptr(owned("apps/v1", "ReplicaSet", "web-1", "rs-uid")), []*metav1.PartialObjectMetadata{owner("apps/v1", "ReplicaSet", "web-1", "rs-uid")}, v1alpha1.RootOwner{Kind: "ReplicaSet", Name: "web-1", UID: "rs-uid"}, false},
		{"a ReplicaSet that is gone", ptr(owned("apps/v1", "ReplicaSet", "web-1", "rs-uid")), nil, v1alpha1.RootOwner{Kind: "ReplicaSet", Name: "web-1", UID: "rs-uid"}, true},
		{"a ReplicaSet under another UID", ptr(owned("apps/v1", "ReplicaSet", "web-1", "older")), []*metav1.PartialObjectMetadata{replicaSet()}, v1alpha1.RootOwner{Kind: "ReplicaSet", Name: "web-1", UID: "older"}, true},
		{"a Job leads to its CronJob", ptr(owned("batch/v1", "Job", "nightly-1", "job-uid")), []*metav1.PartialObjectMetadata{owner("batch/v1", "Job", "nightly-1", "job-uid", owned("batch/v1", "CronJob", "nightly", "cron-uid"))}, v1alpha1.RootOwner{Kind: "CronJob", Name: "nightly", UID: "cron-uid"}, false},
		{"a StatefulSet is the root, whoever owns it", ptr(owned("apps/v1", "StatefulSet", "db", "sts-uid")), []*metav1.PartialObjectMetadata{owner("apps/v1", "StatefulSet", "db", "sts-uid", owned("acme.example/v1", "Database", "db", "x"))}, v1alpha1.RootOwner{Kind: "StatefulSet", Name: "db", UID: "sts-uid"}, false},
		{"a ReplicaSet of another group is the root", ptr(owned("acme.example/v1", "ReplicaSet", "web-1", "rs-uid")), []*metav1.PartialObjectMetadata{replicaSet()}, v1alpha1.RootOwner{Kind: "ReplicaSet", Name: "web-1", UID: "rs-uid"}, false},
		{"a ReplicaSet that was taken from its Deployment", ptr(owned("apps/v1", "ReplicaSet", "web-1", "rs-uid")), []*metav1.PartialObjectMetadata{orphan("apps/v1", "ReplicaSet", "web-1", "rs-uid")}, v1alpha1.RootOwner{Kind: "ReplicaSet", Name: "web-1", UID: "rs-uid"}, true},
		{"a Job that was taken from its CronJob", ptr(owned("batch/v1", "Job", "nightly-1", "job-uid")), []*metav1.PartialObjectMetadata{orphan("batch/v1", "Job", "nightly-1", "job-uid")}, v1alpha1.RootOwner{Kind: "Job", Name: "nightly-1", UID: "job-uid"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := agentPod()
			pod.OwnerReferences = nil
			if test.owner != nil {
				pod.OwnerReferences = []metav1.OwnerReference{*test.owner}
			}
			got, released, err := identity.RootOwner(t.Context(), &reader{owners: test.owners}, pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("root owner (-want +got):\n%s", diff)
			}
			if released != test.released {
				t.Errorf("released = %v, want %v", released, test.released)
			}
		})
	}
}

// orphan carries the marks that its Deployment or CronJob gave it, and has no owner.
func orphan(apiVersion, kind, name string, uid types.UID) *metav1.PartialObjectMetadata {
	object := owner(apiVersion, kind, name, uid)
	if kind == "ReplicaSet" {
		object.Labels = map[string]string{"pod-template-hash": "7d4b9"}
	} else {
		object.Annotations = map[string]string{"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-30T18:00:00Z"}
	}
	return object
}

func ptr[T any](v T) *T { return &v }
