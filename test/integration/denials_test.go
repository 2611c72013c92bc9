package integration_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// explained is what a denial must carry, in its message and in details.causes.
type explained struct {
	Class, Verdict, Reason string
	Rule                   string // empty: no rule had a say
	Grant                  bool   // a grant is named
}

var decisionName = regexp.MustCompile(`^d-[0-9a-z]{16}$`)

// expectExplained looks at one denial as a client receives it.
func expectExplained(t *testing.T, got attempt, want explained) {
	t.Helper()
	var answered apierrors.APIStatus
	if !errors.As(got.err, &answered) {
		t.Fatalf("%+v %s, want a denial", got.outcome, got.message)
	}
	status := answered.Status()
	if status.Details == nil {
		t.Fatalf("no details: %s", status.Message)
	}
	causes := map[string]string{}
	for _, cause := range status.Details.Causes {
		causes[strings.TrimPrefix(string(cause.Type), causePrefix)] = cause.Message
	}
	is := explained{causes["Class"], causes["Verdict"], causes["Reason"], causes["Rule"], causes["Grant"] != ""}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("causes (-want +got):\n%s%s", diff, status.Message)
	}
	if status.Code != 403 || status.Reason == "" || status.Reason == metav1.StatusReasonUnknown || status.Details.Kind == "" || status.Details.RetryAfterSeconds != 0 {
		t.Errorf("status %d %s of kind %q, want a 403 with a reason of its own and no time to retry after", status.Code, status.Reason, status.Details.Kind)
	}
	if !decisionName.MatchString(causes["Decision"]) || len(causes["Next"]) < 10 {
		t.Errorf("decision %q, next %q", causes["Decision"], causes["Next"])
	}
	_, sentence, _ := strings.Cut(status.Message, "denied the request: ")
	if sentence == "" {
		sentence = status.Message // as the webhook itself says it
	}
	for _, part := range []string{"Reason", "Rule", "Grant", "Next", "Decision"} {
		if !strings.Contains(sentence, causes[part]) {
			t.Errorf("the message does not say %s %q: %s", part, causes[part], sentence)
		}
	}
	if !strings.HasSuffix(strings.Split(sentence, " [d-")[0], "Next: "+causes["Next"]+".") {
		t.Errorf("the message does not end in the next step %q: %s", causes["Next"], sentence)
	}
	if word, _, _ := strings.Cut(sentence, ":"); !slices.Contains([]string{"Pending", "Held", "Forbidden", "Denied"}, word) {
		t.Errorf("the message begins with %q: %s", word, sentence)
	}
	if len(sentence) > 480 {
		t.Errorf("the message has %d bytes", len(sentence))
	}
}

// tighten gives a namespace rules of its own.
func tighten(t *testing.T, namespace, rules string) {
	t.Helper()
	policy := &v1alpha1.AgentPolicy{}
	if err := yaml.Unmarshal([]byte("spec: {rules: "+rules+"}"), policy); err != nil {
		t.Fatal(err)
	}
	policy.Namespace, policy.Name = namespace, "default"
	if err := petra.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
}

// Proves B-2, C-5, C-6.
func TestDenialsOfEveryKindSayWhyAndWhatToDo(t *testing.T) {
	const ns = "denials"
	h := at(t, ns)
	tighten(t, ns, `[{name: no-budgets, class: FORBIDDEN, match: {kubernetes: [{groups: [policy], resources: [poddisruptionbudgets], verbs: [create]}]}, detail: The platform sets budgets., recovery: open a request at go/platform}]`)
	must(t, agentPod(ns, "people-0", "default", nil))
	target := func(name string) *corev1.ConfigMap {
		object := configMap(ns, name)
		must(t, object)
		return object
	}
	deletion := func(name string) attempt { return h.agent.try(t, remove(configMap(ns, name))) }
	pendingOf := func(reason string) explained {
		return explained{"ASK", "Pending", reason, "baseline/delete-foreign", true}
	}
	waits := target("waits")
	used, revoked, other := target("used"), target("revoked"), target("other")
	h.approved(t, remove(used))
	if got := h.agent.try(t, remove(used)); got.outcome != allowed("ASK", "Granted") {
		t.Fatalf("the use: %+v %s", got.outcome, got.message)
	}
	must(t, configMap(ns, "used")) // somebody makes it again
	taken := h.approved(t, remove(revoked))
	if err := carla.Patch(t.Context(), taken.DeepCopy(), revoke(taken)); err != nil {
		t.Fatal(err)
	}
	front := service(ns, "front")
	front.Spec.Selector = map[string]string{"app": "front"}
	must(t, front)
	h.approved(t, merge(front, `{"spec":{"selector":{"app":"approved"}}}`))
	budget := call{"POST", "/apis/policy/v1/namespaces/" + ns + "/poddisruptionbudgets", asJSON, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"a"}}}}`}
	stray, err := accountActor(t.Context(), ns, "default", "")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got := h.agent.try(t, budget.send(false)); got.Class != "FORBIDDEN" {
			return fmt.Errorf("the rule is not in force: %+v %s", got.outcome, got.message)
		}
		return nil
	})
	tests := map[string]struct {
		attempt func() attempt
		want    explained
	}{
		"a question":            {func() attempt { return deletion("waits") }, pendingOf("PermissionPending")},
		"a question that waits": {func() attempt { deletion(waits.Name); return deletion(waits.Name) }, pendingOf("PermissionPending")},
		"a question of a rule": {func() attempt {
			return h.agent.try(t, remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		}, explained{"ASK", "Pending", "PermissionPending", "baseline/delete-data", true}},
		"a question of a parsed fact": {func() attempt { return h.agent.try(t, evict(ns, "people-0")) }, explained{"ASK", "Pending", "PermissionPending", "", true}},
		"a stream":                    {func() attempt { return h.agent.try(t, execute(ns, "people-0", "date")) }, explained{"ASK", "Pending", "PermissionPending", "baseline/stream-not-seen", true}},
		"a used approval":             {func() attempt { return deletion("used") }, explained{"ASK", "Pending", "PermissionPending", "baseline/delete-foreign", true}}, // another UID: another question
		"a revoked approval":          {func() attempt { return deletion("revoked") }, pendingOf("GrantRevoked")},
		"another change": {func() attempt {
			return h.agent.try(t, merge(front, `{"spec":{"selector":{"app":"other"}}}`))
		}, explained{"ASK", "Pending", "GrantDigestMismatch", "", true}},
		"a collection": {func() attempt {
			return h.agent.try(t, call{method: "DELETE", path: "/api/v1/namespaces/" + ns + "/configmaps"}.send(false))
		}, explained{"ASK", "Deny", "Unnamed", "", false}},
		"another namespace":      {func() attempt { return h.agent.try(t, create(configMap("free", "a"))) }, explained{"FORBIDDEN", "Deny", "OutsideAuthority", "", false}},
		"a rule of the platform": {func() attempt { return h.agent.try(t, budget.send(false)) }, explained{"FORBIDDEN", "Deny", "Forbidden", "denials/default/no-budgets", false}},
		"a parsed escalation": {func() attempt {
			return h.agent.try(t, call{"PATCH", "/api/v1/namespaces/" + ns + "/pods/people-0/status", asMerge, `{"metadata":{"annotations":{"stepbeyond.dev/user":"a"}}}`}.send(false))
		}, explained{"FORBIDDEN", "Deny", "Forbidden", "", false}},
		"a dry run that shows credentials": {func() attempt { return h.agent.try(t, create(secret(ns, "s"), client.DryRunAll)) }, explained{"ASK", "Pending", "PermissionPending", "", false}},
		"no session":                       {func() attempt { return stray.try(t, remove(other)) }, explained{"ASK", "Deny", "NoSession", "baseline/delete-foreign", false}},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) { expectExplained(t, tests[name].attempt(), tests[name].want) })
	}
}

// Proves B-2, C-5, C-6, G-6.
func TestDenialsThatTakeTimeOrAProfileSayWhyAndWhatToDo(t *testing.T) {
	hasty, narrow, changing := at(t, "denials-hasty"), at(t, "denials-narrow"), at(t, "denials-changing")
	for _, h := range []*home{hasty, narrow, changing} {
		for _, name := range []string{"a", "b", "c"} {
			must(t, configMap(h.namespace, name))
		}
	}
	deletion := func(h *home, name string) attempt { return h.agent.try(t, remove(configMap(h.namespace, name))) }
	const rule = "baseline/delete-foreign"
	t.Run("too many questions", func(t *testing.T) {
		deletion(narrow, "a")
		deletion(narrow, "b")
		expectExplained(t, deletion(narrow, "c"), explained{"ASK", "Deny", "TooManyPending", rule, false})
	})
	t.Run("a denied question", func(t *testing.T) {
		g := hasty.ask(t, remove(configMap(hasty.namespace, "a")))
		hasty.decide(t, carla, g, v1alpha1.VerdictDeny, map[string]any{"reason": "No."})
		expectExplained(t, deletion(hasty, "a"), explained{"ASK", "Deny", "GrantDenied", rule, true})
	})
	t.Run("an expired question", func(t *testing.T) {
		g := hasty.ask(t, remove(configMap(hasty.namespace, "b")))
		hasty.becomes(t, g.Name, v1alpha1.GrantExpired, v1alpha1.ReasonNotDecidedInTime)
		expectExplained(t, deletion(hasty, "b"), explained{"ASK", "Pending", "GrantExpired", rule, true})
	})
	t.Run("a changed policy", func(t *testing.T) {
		g := changing.approved(t, remove(configMap(changing.namespace, "a")))
		changing.becomes(t, g.Name, v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet)
		tighten(t, changing.namespace, `[{name: ask-deletions, class: ASK, match: {kubernetes: [{groups: [""], resources: [configmaps], verbs: [delete]}]}}]`)
		changing.becomes(t, g.Name, v1alpha1.GrantStale, v1alpha1.ReasonPolicyChanged)
		expectExplained(t, deletion(changing, "a"), explained{"ASK", "Pending", "GrantStale", rule, true})
	})
}

// What the API server does not send, or only in a moment that no test can choose, is sent to the webhook as the API server
// would send it.
//
// Proves B-2.
func TestDenialsOfReviewsThatCannotBeJudgedSayWhyAndWhatToDo(t *testing.T) {
	h := at(t, "denials")
	review := webhookClient(t)
	stale := configMap(h.namespace, "stale")
	must(t, stale)
	stale.ResourceVersion = "1"
	for name, tt := range map[string]struct {
		change func(*admissionv1.AdmissionRequest)
		want   explained
	}{
		"an object that cannot be read": {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`"text"`) }, explained{"ASK", "Deny", "Malformed", "", false}},
		"an object without its stamp":   {func(*admissionv1.AdmissionRequest) {}, explained{"AUTO", "Deny", "Unstamped", "", false}},
		"an older version": {func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.Name, r.Object, r.OldObject = admissionv1.Delete, stale.Name, runtime.RawExtension{}, rawOf(t, stale)
			r.Resource, r.Kind = metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		}, explained{"ASK", "Deny", "StaleRead", "", false}},
		"a caller without a credential": {func(r *admissionv1.AdmissionRequest) { r.UserInfo.Extra = nil }, explained{"FORBIDDEN", "Deny", "CredentialUnbound", "", false}},
	} {
		t.Run(name, func(t *testing.T) {
			request := h.deploymentReview(t)
			tt.change(request)
			expectExplained(t, review(t, request), tt.want)
		})
	}
}
