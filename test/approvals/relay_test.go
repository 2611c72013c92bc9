package approvals_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

const (
	relayNamespace = "stepbeyond-relay"
	relayName      = "system:serviceaccount:stepbeyond-relay:relay"
)

// carried acts as the holder of a credential who impersonates a person and says that it is a relay; empty for neither.
func carried(t *testing.T, holder *person, name, relay string) *person {
	t.Helper()
	cfg := *holder.config
	cfg.Impersonate.UserName = name
	if relay != "" {
		cfg.Impersonate.Extra = map[string][]string{v1alpha1.ExtraRelay: {relay}}
	}
	p, err := as(name, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Proves G-3, G-4, K-4: with config/relay a chat carries answers of exactly the people it names, under their names; with the
// API server's own impersonation, constrained and whole.
func TestARelayCarriesAnswersUnderThePersonsName(t *testing.T) {
	h := home(t, "relayed", cluster.Profile)
	n := 0
	asked := func(t *testing.T) *v1alpha1.PermissionGrant {
		t.Helper()
		n++
		target := configMap(h.Namespace, fmt.Sprintf("target-%d", n))
		must(t, target)
		return ask(t, h, remove(target))
	}
	approve := func(who *person, g *v1alpha1.PermissionGrant) error {
		return who.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil))
	}
	t.Run("not for an agent that could send the answer itself", func(t *testing.T) {
		if err := shared.Env.ApplyKustomization(t.Context(), "config/relay"); err != nil {
			t.Fatal(err)
		}
		setRelays(t, v1alpha1.ServiceAccountReference{Namespace: relayNamespace, Name: "relay"})
		g := asked(t)
		asBen := carried(t, &person{name: h.Agent.Username, config: h.Agent.Config}, ben.name, relayName)
		eventually(t, func() error {
			err := approve(asBen, g)
			if err == nil || strings.Contains(err.Error(), "is not known") {
				return fmt.Errorf("not refused for the reason that is tested: %w", err)
			}
			refused(t, g, err, "the agent that asks may impersonate the relay")
			return nil
		})
		decide(t, ben, g, v1alpha1.VerdictApprove)
	})
	ordinary(t, h)
	for _, way := range []struct{ name, folder string }{{"constrained impersonation", "config/relay"}, {"whole impersonation", "config/relay/whole"}} {
		t.Run(way.name, func(t *testing.T) {
			if err := shared.Env.ApplyKustomization(t.Context(), way.folder); err != nil {
				t.Fatal(err)
			}
			relay := account(t, relayNamespace, "relay", "")
			asBen := carried(t, relay, ben.name, relayName)
			g := asked(t)
			setRelays(t)
			eventually(t, func() error {
				if err := approve(asBen, g); err == nil || !strings.Contains(err.Error(), "the relay that carries this answer is not known") {
					return fmt.Errorf("a relay that nobody listed: %w", err)
				}
				return nil
			})
			setRelays(t, v1alpha1.ServiceAccountReference{Namespace: relayNamespace, Name: "relay"})
			eventually(t, func() error { return approve(asBen, g) })
			g = becomes(t, g, v1alpha1.GrantApproved)
			if d := g.Spec.Decisions[0]; d.Approver != ben.name || d.Relay != relayName {
				t.Errorf("stamped %q carried by %q, want %s carried by %s", d.Approver, d.Relay, ben.name, relayName)
			}
			if got, want := message(g, v1alpha1.ConditionDecided), "Approved by "+ben.name+" (carried by "+relayName+")."; got != want {
				t.Errorf("the grant says %q, want %q", got, want)
			}
			if err := remove(configMap(h.Namespace, g.Spec.Request.Operation.Target.Name))(t.Context(), h.Agent); err != nil {
				t.Errorf("what ben approved in the chat: %v", err)
			}

			g = asked(t)
			agent := &person{name: h.Agent.Username, config: h.Agent.Config}
			for name, row := range map[string]struct {
				who  *person
				says string
			}{
				"in its own name":                   {relay, "forbidden"},
				"without saying who it is":          {carried(t, relay, ben.name, ""), "credential-id"},
				"as a person whom it was not given": {carried(t, relay, dora.name, relayName), "cannot impersonate"},
				"under the name of another relay":   {carried(t, relay, ben.name, "system:serviceaccount:ci:other"), "cannot impersonate"},
				"as the agent that asks":            {carried(t, relay, h.Agent.Username, relayName), "cannot impersonate"},
				"an agent in its place":             {carried(t, agent, ben.name, relayName), "cannot impersonate"},
			} {
				t.Run(name, func(t *testing.T) { refused(t, g, approve(row.who, g), row.says) })
			}
			t.Run("by kubectl, as the recipe says", func(t *testing.T) {
				out, err := relay.kubectl(t.Context(), t, nil, "--as="+carla.name, "--as-user-extra="+v1alpha1.ExtraRelay+"="+relayName,
					"-n", h.Namespace, "patch", "permissiongrant", g.Name, "--type=json", "-p",
					`[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Deny","shownDigest":"`+g.Spec.Request.Digest+`"}}]`)
				if err != nil {
					t.Fatalf("%v %s", err, out)
				}
				if d := becomes(t, g, v1alpha1.GrantDenied).Spec.Decisions[0]; d.Approver != carla.name || d.Relay != relayName {
					t.Errorf("stamped %q carried by %q", d.Approver, d.Relay)
				}
			})
		})
	}
}

// Proves G-3: under constrained impersonation a relay does nothing in a person's name but answer.
func TestARelayDoesNothingElseInAPersonsName(t *testing.T) {
	const namespace = "bens-work"
	must(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		everywhere("edit", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: ben.name}))
	if err := shared.Env.ApplyKustomization(t.Context(), "config/relay"); err != nil {
		t.Fatal(err)
	}
	asBen := carried(t, account(t, relayNamespace, "relay", ""), ben.name, relayName)
	eventually(t, func() error { return ben.Create(t.Context(), configMap(namespace, "own"), client.DryRunAll) })
	eventually(t, func() error {
		err := asBen.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "none"}, &v1alpha1.PermissionGrant{})
		return client.IgnoreNotFound(err) // it may look
	})
	for name, err := range map[string]error{
		"a ConfigMap": asBen.Create(t.Context(), configMap(namespace, "relayed"), client.DryRunAll),
		"a list":      asBen.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)),
		"grants":      asBen.List(t.Context(), &v1alpha1.PermissionGrantList{}, client.InNamespace(namespace)),
	} {
		if err == nil || !strings.Contains(err.Error(), "cannot impersonate") {
			t.Errorf("%s in ben's name: %v", name, err)
		}
	}
}

// ordinary gives the agent of a home the shipped role for agents instead of every right.
func ordinary(t *testing.T, h *cluster.Home) {
	t.Helper()
	all := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "everything-" + h.Namespace}}
	if err := shared.Admin.Delete(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	must(t, everywhere("stepbeyond-agent-workload", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: h.Namespace, Name: "agent"}))
	probe := configMap(h.Namespace, "probe")
	eventually(t, func() error {
		if err := h.Agent.List(t.Context(), &corev1.SecretList{}, client.InNamespace(h.Namespace)); err == nil {
			return errors.New("the agent has every right still")
		}
		return h.Agent.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
	})
}

func setRelays(t *testing.T, relays ...v1alpha1.ServiceAccountReference) {
	t.Helper()
	if err := changePolicy(t.Context(), func(spec *v1alpha1.ClusterAgentPolicySpec) { spec.AnswerRelays = relays }); err != nil {
		t.Fatal(err)
	}
}
