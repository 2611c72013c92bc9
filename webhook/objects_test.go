package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

var now = time.Date(2026, 11, 30, 18, 20, 10, 0, time.UTC)

// cluster is what the handlers under test can read.
type cluster struct {
	policies   []v1alpha1.ClusterAgentPolicy
	profiles   []v1alpha1.AgentPolicy
	namespaces []corev1.Namespace
	sessions   []v1alpha1.AgentSession
	err        error
}

// List implements client.Reader.
func (c *cluster) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.AgentSessionList:
		var selected client.ListOptions
		selected.ApplyOptions(options)
		for _, session := range c.sessions {
			if session.Namespace == selected.Namespace {
				list.Items = append(list.Items, session)
			}
		}
	case *v1alpha1.ClusterAgentPolicyList:
		list.Items = c.policies
	case *v1alpha1.AgentPolicyList:
		list.Items = c.profiles
	case *corev1.NamespaceList:
		list.Items = c.namespaces
	default:
		return fmt.Errorf("list of %T is not expected", list)
	}
	return c.err
}

// Get implements client.Reader.
func (c *cluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return fmt.Errorf("get of %T is not expected", object)
	}
	for i := range c.namespaces {
		if c.namespaces[i].Name == key.Name {
			c.namespaces[i].DeepCopyInto(namespace)
			return c.err
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
}

// governedCluster has the namespaces checkout (profile standard), payments (profile production, where the session's
// user may not approve) and lab (a profile that only audits), and the governed user release-agent of checkout.
func governedCluster() *cluster {
	labelled := func(name, profile string) corev1.Namespace {
		return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelProfile: profile}}}
	}
	template := v1alpha1.SessionTemplate{
		Name: "agent", ServiceAccountName: "agent", User: v1alpha1.TemplateUser{Source: v1alpha1.UserSourceFixed, Name: "carla@acme.example"},
		Authority: v1alpha1.Authority{
			Stages:       []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StageExecute},
			Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityReadContext, v1alpha1.CapabilityExecuteLocal},
			Kubernetes: []v1alpha1.KubernetesAuthority{{
				Groups: []string{"apps"}, Resources: []string{"deployments", "deployments/*"}, Names: []string{"web-*"},
				Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate, v1alpha1.VerbUpdate},
			}},
			Budgets: &v1alpha1.Budgets{MaxMutations: new(int32(200))},
		},
	}
	profile := func(name string, user v1alpha1.SessionUserApproval) v1alpha1.AgentPolicy {
		return v1alpha1.AgentPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "stepbeyond-system", Name: name, UID: "standard-uid", Generation: 1},
			Spec: v1alpha1.AgentPolicySpec{
				Approvals: &v1alpha1.Approvals{SessionUser: user}, SessionTemplates: []v1alpha1.SessionTemplate{template},
			},
		}
	}
	production := profile("production", v1alpha1.SessionUserRefuse)
	production.UID = "production-uid"
	return &cluster{
		policies: []v1alpha1.ClusterAgentPolicy{*clusterPolicy("default", func(p *v1alpha1.ClusterAgentPolicy) {
			p.UID, p.Generation = "cluster-uid", 17
			p.Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: "release-agent", SessionNamespace: "checkout"}}
			p.Spec.Governed.ExemptServiceAccounts = []v1alpha1.ExemptServiceAccount{
				{ServiceAccountReference: v1alpha1.ServiceAccountReference{Namespace: "checkout", Name: "bot"}, Reason: "answers for the pipeline"},
			}
			p.Spec.ServiceAccountApprovers = []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "bot"}, {Namespace: "checkout", Name: "agent"}}
			p.Spec.Profiles = []v1alpha1.ProfileBinding{
				{Name: "standard", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementEnforce},
				{Name: "production", AgentPolicyName: "production", FloorEnforcement: v1alpha1.FloorEnforcementEnforce},
				{Name: "onboarding", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementAudit},
			}
			p.Spec.Delegation = &v1alpha1.Delegation{NamespaceMaySet: []v1alpha1.DelegableSetting{v1alpha1.DelegableModelTier}, CatalogueToolPrefixes: []string{"mcp:checkout/"}}
		})},
		profiles:   []v1alpha1.AgentPolicy{profile("standard", v1alpha1.SessionUserAllow), production},
		namespaces: []corev1.Namespace{labelled("checkout", "standard"), labelled("payments", "production"), labelled("lab", "onboarding"), {ObjectMeta: metav1.ObjectMeta{Name: "free"}}},
	}
}

func clusterPolicy(name string, changes ...func(*v1alpha1.ClusterAgentPolicy)) *v1alpha1.ClusterAgentPolicy {
	p := &v1alpha1.ClusterAgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ClusterAgentPolicySpec{
			BaselineVersion: "v1",
			Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}},
			}},
		},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// loaded is a store with the snapshot of what the cluster holds.
func loaded(t *testing.T, c *cluster) *policystore.Store {
	t.Helper()
	store := &policystore.Store{Reader: c}
	if err := store.Rebuild(t.Context(), metav1.NewTime(now)); err != nil {
		t.Fatal(err)
	}
	return store
}

// verbs is an authorizer that knows who has which verb: "ben@acme.example approve".
type verbs map[string]bool

func (v verbs) access(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	return v[spec.User+" "+spec.ResourceAttributes.Verb], nil
}

// people and accounts as the API server authenticates them.
func person(name string, groups ...string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: name, UID: "uid-" + name, Groups: groups,
		Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=1"}},
	}
}

func serviceAccount(namespace, name string) authenticationv1.UserInfo {
	return person("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts")
}

func impersonated(user authenticationv1.UserInfo) authenticationv1.UserInfo {
	user.Extra = nil
	return user
}

var resources = map[string]string{
	"PermissionGrant": "permissiongrants", "AgentSession": "agentsessions",
	"ClusterAgentPolicy": "clusteragentpolicies", "AgentPolicy": "agentpolicies",
}

// reviewOf is the request that the API server sends: an update when there is an old object.
func reviewOf(t *testing.T, user authenticationv1.UserInfo, kind string, object, old client.Object) admission.Request {
	t.Helper()
	raw := func(o client.Object) runtime.RawExtension {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "review", Operation: admissionv1.Create, UserInfo: user, Namespace: object.GetNamespace(), Name: object.GetName(),
		Kind:     metav1.GroupVersionKind{Group: "stepbeyond.dev", Version: "v1alpha1", Kind: kind},
		Resource: metav1.GroupVersionResource{Group: "stepbeyond.dev", Version: "v1alpha1", Resource: resources[kind]},
		Object:   raw(object),
	}}
	if old != nil {
		req.Operation, req.OldObject = admissionv1.Update, raw(old)
	}
	return req
}

// said is an answer without what changes from run to run: the reason and the message, or "allowed".
func said(response admission.Response) string {
	if response.Allowed {
		return "allowed"
	}
	message, _, _ := strings.Cut(response.Result.Message, " [d-")
	return fmt.Sprintf("%d %s: %s", response.Result.Code, response.Result.Reason, message)
}

func objectsFor(t *testing.T, c *cluster, access Access) *Objects {
	t.Helper()
	return &Objects{Store: loaded(t, c), Reader: c, Live: c, Access: access, Now: func() time.Time { return now }}
}

// Proves F-1, G-3.
func TestWhoMayWriteObjectsOfOurs(t *testing.T) {
	everyone := func(context.Context, authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, nil }
	objects := objectsFor(t, governedCluster(), everyone)
	closed := "403 Forbidden: Forbidden: create agentpolicies stepbeyond-system/new is closed to agents and no approval opens it " +
		"(EscalatesAuthority; rule baseline/own-objects). Next: ask a person; an open question is answered with kubectl by its approver."
	tests := []struct {
		name string
		user authenticationv1.UserInfo
		want string
	}{
		{"a person", person("petra@acme.example"), "allowed"},
		{"a ServiceAccount of a free namespace", serviceAccount("argocd", "controller"), "allowed"},
		{"a governed ServiceAccount", serviceAccount("checkout", "agent"), closed},
		{"a governed ServiceAccount, impersonated", impersonated(serviceAccount("checkout", "agent")), closed},
		{"a ServiceAccount whose profile only audits", serviceAccount("lab", "agent"), closed},
		{"an exempt ServiceAccount", serviceAccount("checkout", "bot"), "allowed"},
		{"an exempt ServiceAccount, impersonated", impersonated(serviceAccount("checkout", "bot")), closed},
		{"a governed user", person("release-agent"), closed},
		{"the canary", serviceAccount("stepbeyond-canary", "canary"), closed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			profile := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "stepbeyond-system", Name: "new"}}
			got := said(objects.Handle(t.Context(), reviewOf(t, tt.user, "AgentPolicy", profile, nil)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves F-1.
func TestWhatCannotBeCheckedIsRefused(t *testing.T) {
	// Whether the namespace joins just now is read live.
	own := &v1alpha1.AgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "free", Name: "default"}, Spec: v1alpha1.AgentPolicySpec{ModelTier: v1alpha1.ModelTierSmall},
	}
	tests := []struct {
		name    string
		objects func(t *testing.T) *Objects
		change  func(*admission.Request)
		want    string
	}{
		{
			name:    "before a snapshot is loaded",
			objects: func(*testing.T) *Objects { return &Objects{Store: &policystore.Store{}, Now: time.Now} },
			want:    "403 PolicyNotLoaded: Denied: create agentpolicies free/default is refused: Step Beyond is starting and has no policy yet; nothing was asked. Next: run this command again in 10 seconds.",
		},
		{
			name: "when the cluster cannot be read",
			objects: func(t *testing.T) *Objects {
				objects := objectsFor(t, governedCluster(), nil)
				broken := governedCluster()
				broken.err = errors.New("timeout at s3cr3t")
				objects.Live = broken
				return objects
			},
			want: "403 Undecided: Denied: create agentpolicies free/default is refused: deciding failed. Next: run this command again in 10 seconds; if it stays, a person reads the manager's log under this decision.",
		},
		{
			name: "when the handler panics",
			objects: func(t *testing.T) *Objects {
				objects := objectsFor(t, governedCluster(), nil)
				objects.Live = nil
				return objects
			},
			want: "403 Undecided: Denied: create agentpolicies free/default is refused: deciding failed. Next: run this command again in 10 seconds; if it stays, a person reads the manager's log under this decision.",
		},
		{
			name:    "an object that is not of its kind",
			objects: func(t *testing.T) *Objects { return objectsFor(t, governedCluster(), nil) },
			change:  func(req *admission.Request) { req.Object.Raw = []byte(`{"spec":{"rules":"s3cr3t"}}`) },
			want:    "403 Malformed: Denied: create agentpolicies free/default cannot be read. object cannot be read as its kind. Next: correct the field and send it again.",
		},
		{
			name:    "a kind that this binary does not know",
			objects: func(t *testing.T) *Objects { return objectsFor(t, governedCluster(), nil) },
			change:  func(req *admission.Request) { req.Resource.Resource = "steeringinputs" },
			want:    "403 Malformed: Denied: create steeringinputs free/default cannot be read. resource steeringinputs: cannot be read as its kind. Next: correct the field and send it again.",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := reviewOf(t, person("petra@acme.example"), "AgentPolicy", own, nil)
			if tt.change != nil {
				tt.change(&req)
			}
			if diff := cmp.Diff(tt.want, said(tt.objects(t).Handle(t.Context(), req))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLabelsOfTheServerAreNotChanged(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{}.access)
	labelled := func(labels map[string]string) *v1alpha1.PermissionGrant {
		return question(func(g *v1alpha1.PermissionGrant) { g.Labels = labels })
	}
	session := func(labels map[string]string) *v1alpha1.AgentSession {
		return opened(func(s *v1alpha1.AgentSession) { s.Labels = labels })
	}
	written := map[string]string{v1alpha1.LabelSession: "fix-latency-9c1f0", v1alpha1.LabelVerb: "delete"}
	forbidden := func(keys ...string) string {
		var parts []string
		for _, key := range keys {
			parts = append(parts, "metadata.labels["+key+"]: Forbidden: is written by the server; leave it as it is")
		}
		text := strings.Join(parts, ", ")
		if len(keys) > 1 {
			text = "[" + text + "]"
		}
		return "403 Forbidden: " + text
	}
	tests := []struct {
		name     string
		kind     string
		new, old client.Object
		want     string
	}{
		{"a label of a person on a grant", "PermissionGrant", labelled(map[string]string{v1alpha1.LabelSession: "fix-latency-9c1f0", v1alpha1.LabelVerb: "delete", "team": "a"}), labelled(written), "allowed"},
		{"a grant moved to another session", "PermissionGrant", labelled(map[string]string{v1alpha1.LabelSession: "other", v1alpha1.LabelVerb: "delete"}), labelled(written), forbidden(v1alpha1.LabelSession)},
		{"a grant without its labels", "PermissionGrant", labelled(nil), labelled(written), forbidden(v1alpha1.LabelSession, v1alpha1.LabelVerb)},
		{"a grant with one more", "PermissionGrant", labelled(written), labelled(map[string]string{v1alpha1.LabelVerb: "delete"}), forbidden(v1alpha1.LabelSession)},
		{"a session that claims a template", "AgentSession", session(map[string]string{v1alpha1.LabelTemplate: "agent"}), session(nil), forbidden(v1alpha1.LabelTemplate)},
		{"a session that is opened with a template's label", "AgentSession", session(map[string]string{v1alpha1.LabelTemplate: "agent"}), nil, forbidden(v1alpha1.LabelTemplate)},
		{"a label of a person on a session", "AgentSession", session(map[string]string{"change": "INC-4412"}), session(nil), "allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := admit(t, objects, person("ben@acme.example"), tt.kind, tt.new, tt.old); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestEachEntryIsCountedApart(t *testing.T) {
	store := loaded(t, governedCluster())
	clock := func() time.Time { return now }
	cluster := governedCluster()
	handlers := map[string]admission.Handler{
		entryObjects:      objectsFor(t, cluster, verbs{}.access),
		entryObjectsStamp: &ObjectsStamp{Store: store, Now: clock},
		entryOrigin:       &Origin{Store: store, Sessions: &identity.Resolver{Cached: cluster, Live: cluster}, Now: clock},
		entryEnforce:      &Enforce{Store: &policystore.Store{}, Now: clock},
	}
	count := func() map[string]float64 {
		counts := map[string]float64{}
		for entry := range handlers {
			for class := policy.Class(0); class <= policy.ClassForbidden; class++ {
				for _, verdict := range []policy.Verdict{policy.VerdictAllow, policy.VerdictDeny} {
					counts[entry] += testutil.ToFloat64(reviews.WithLabelValues(entry, class.String(), string(verdict)))
				}
			}
		}
		return counts
	}
	want := count()
	for entry, handler := range handlers {
		handler.Handle(t.Context(), reviewOf(t, person("petra@acme.example"), "AgentSession", opened(), nil))
		want[entry]++
		if diff := cmp.Diff(want, count()); diff != "" {
			t.Errorf("reviews after one of %s (-want +got):\n%s", entry, diff)
		}
	}
}
