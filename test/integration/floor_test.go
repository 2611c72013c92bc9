package integration_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Proves K-6, F-1, K-2.
func TestWithTheManagerKilledTheFloorStandsAndEverythingGovernedFailsClosed(t *testing.T) {
	const ns = "dead"
	h := at(t, ns)
	target, own := configMap(ns, "target"), configMap(ns, "own")
	must(t, target, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}})
	if got := h.agent.try(t, create(own)); got.outcome != allowed("AUTO", "Allowed") {
		t.Fatalf("before: %+v %s", got.outcome, got.message)
	}
	approvedGrant := h.approved(t, remove(target))
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manager.Start(); err != nil && !strings.Contains(err.Error(), "runs already") {
			t.Error(err)
		}
	})
	for name, tt := range forbiddenRequests(ns) {
		t.Run("forbidden: "+name, func(t *testing.T) {
			got := h.agent.try(t, tt.request)
			if diff := cmp.Diff(byFloor(tt.by), got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
			expectSentence(t, got.message, "Forbidden: ")
		})
	}
	for name, request := range map[string]func(context.Context, *actor) error{
		"AUTO":                create(configMap(ns, "late")),
		"AUTO on what is own": merge(own, `{"data":{"text":"bye"}}`),
		"an approved ASK":     remove(target),
		"a question":          create(ingress(ns, "route")),
		"a dry run":           create(configMap(ns, "late"), client.DryRunAll),
	} {
		t.Run("fails closed: "+name, func(t *testing.T) {
			got := h.agent.try(t, request)
			if got.Code != 500 || !strings.Contains(got.message, `failed calling webhook "`+enforcer+`"`) {
				t.Errorf("%+v %s", got.outcome, got.message)
			}
		})
	}
	t.Run("bystanders notice nothing", func(t *testing.T) {
		for _, object := range []client.Object{configMap(ns, "note"), deployment(ns, "shop"), agentPod(ns, "job", "default", nil)} {
			if err := ben.Create(t.Context(), object); err != nil {
				t.Error(err)
			}
			if err := ben.Delete(t.Context(), object); err != nil {
				t.Error(err)
			}
		}
	})
	// Writes of our own kinds are validated for everybody, so nobody decides while nobody validates.
	if err := carla.Patch(t.Context(), approvedGrant.DeepCopy(), revoke(approvedGrant)); err == nil {
		t.Error("a grant was written without validation")
	}

	startManager(t)
	if got := h.agent.try(t, remove(target)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("the approval after the restart: %+v %s", got.outcome, got.message)
	}
	if got := h.agent.try(t, remove(own)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("its own object after the restart: %+v %s", got.outcome, got.message)
	}
	h.becomes(t, approvedGrant.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
}

type forbiddenRequest struct {
	by      string
	request func(context.Context, *actor) error
}

// forbiddenRequests are the rows FORBIDDEN of the class table.
func forbiddenRequests(ns string) map[string]forbiddenRequest {
	const authority, pods, self = "stepbeyond-floor-authority", "stepbeyond-floor-pods", "stepbeyond-floor-self"
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	token := func(account string) func(context.Context, *actor) error {
		return func(ctx context.Context, a *actor) error {
			_, err := a.core.CoreV1().ServiceAccounts(ns).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		}
	}
	privileged, foreign, host := agentPod(ns, "privileged", "", nil), agentPod(ns, "foreign", "other", nil), deployment(ns, "host")
	privileged.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	host.Spec.Template.Spec.HostNetwork = true
	cluster := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	proxied := func(resource, name string) func(context.Context, *actor) error {
		return func(ctx context.Context, a *actor) error {
			return a.core.CoreV1().RESTClient().Get().Namespace(ns).Resource(resource).Name(name).SubResource("proxy").Do(ctx).Error()
		}
	}
	profile := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "standard"}}
	return map[string]forbiddenRequest{
		"a RoleBinding":                          {authority, create(&rbacv1.RoleBinding{ObjectMeta: named("debug"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}})},
		"a ClusterRole":                          {authority, create(&rbacv1.ClusterRole{ObjectMeta: cluster("debug")})},
		"its own token":                          {authority, token("agent")},
		"the token of another account":           {authority, token("default")},
		"a Secret that is filled with a token":   {authority, create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "t", Annotations: map[string]string{corev1.ServiceAccountNameKey: "agent"}}, Type: corev1.SecretTypeServiceAccountToken})},
		"the removal of the webhook":             {authority, remove(&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: cluster("stepbeyond")})},
		"a change of its kinds' definitions":     {authority, kindDefinition},
		"a Node":                                 {authority, create(&corev1.Node{ObjectMeta: cluster("worker-3")})},
		"a StorageClass":                         {authority, create(&storagev1.StorageClass{ObjectMeta: cluster("fast"), Provisioner: "acme.example/fast"})},
		"a proxied request to a Pod":             {authority, proxied("pods", "agent-0")},
		"a proxied request to a Service":         {authority, proxied("services", "web")},
		"a privileged Pod":                       {pods, create(privileged)},
		"a Pod under another account":            {pods, create(foreign)},
		"a Deployment in the node's network":     {pods, create(host)},
		"the profile that governs it":            {self, merge(profile, `{"spec":{"rulesEnforcement":"Audit"}}`)},
		"the label that governs its namespace":   {self, merge(&corev1.Namespace{ObjectMeta: cluster(ns)}, `{"metadata":{"labels":{"stepbeyond.dev/profile":null}}}`)},
		"a ConfigMap in the system namespace":    {self, create(configMap(env.SystemNamespace, "x"))},
		"the deletion of the system namespace":   {self, remove(&corev1.Namespace{ObjectMeta: cluster(env.SystemNamespace)})},
		"the stamp of an own object":             {"stepbeyond-floor-self", merge(configMap(ns, "own"), `{"metadata":{"annotations":{"stepbeyond.dev/created-by":null}}}`)},
		"an impersonated request is not its own": {"stepbeyond-floor-self", impersonatedAgent(ns)},
	}
}

// kindDefinition deletes the definition of a kind of ours.
func kindDefinition(ctx context.Context, a *actor) error {
	return a.core.Discovery().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/permissiongrants.stepbeyond.dev").Do(ctx).Error()
}

// impersonatedAgent is the administrator in the agent's name, with the agent's answer.
func impersonatedAgent(ns string) func(context.Context, *actor) error {
	return func(ctx context.Context, _ *actor) error {
		cfg := plane.Admin()
		cfg.Impersonate.UserName = "system:serviceaccount:" + ns + ":agent"
		a, err := newActor("admin", cfg)
		if err != nil {
			return err
		}
		return a.Create(ctx, configMap(ns, "impersonated"))
	}
}
