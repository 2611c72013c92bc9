package notices_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	pendingType  = "dev.stepbeyond.grant.pending.v1alpha1"
	expiringType = "dev.stepbeyond.grant.expiring.v1alpha1"
	approver     = "ben@acme.example"
)

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// home makes a governed namespace with an agent, whose questions ben may answer with the shipped role alone.
func home(t *testing.T, namespace, profile string) *cluster.Home {
	t.Helper()
	h, err := world.HomeUnder(t.Context(), namespace, profile)
	if err != nil {
		t.Fatal(err)
	}
	must(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "approvers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stepbeyond-approver"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: approver}},
	})
	return h
}

// must creates something as a person.
func must(t *testing.T, object client.Object) {
	t.Helper()
	if err := world.Admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// remove asks to delete what a person made, which needs an approval.
func remove(t *testing.T, agent *cluster.Actor, namespace, name string) error {
	t.Helper()
	return agent.Delete(t.Context(), configMap(namespace, name))
}

// asked has the agent ask for the deletion of a new ConfigMap, and gives the question.
func asked(t *testing.T, h *cluster.Home, name string) *v1alpha1.PermissionGrant {
	t.Helper()
	must(t, configMap(h.Namespace, name))
	if err := remove(t, h.Agent, h.Namespace, name); err == nil || !strings.Contains(err.Error(), "needs approval") {
		t.Fatalf("the deletion: %v, want a question", err)
	}
	for _, g := range grants(t, h.Namespace) {
		if g.Spec.Request.Operation.Target.Name == name {
			return &g
		}
	}
	t.Fatalf("there is no question about %s", name)
	return nil
}

func grants(t *testing.T, namespace string) []v1alpha1.PermissionGrant {
	t.Helper()
	var list v1alpha1.PermissionGrantList
	if err := world.Admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func current(t *testing.T, g *v1alpha1.PermissionGrant) *v1alpha1.PermissionGrant {
	t.Helper()
	live := &v1alpha1.PermissionGrant{}
	if err := world.Admin.Get(t.Context(), client.ObjectKeyFromObject(g), live); err != nil {
		t.Fatal(err)
	}
	return live
}

// eventually calls done until it answers nil.
func eventually(t *testing.T, done func() error) {
	t.Helper()
	deadline := time.Now().Add(waitAtMost)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// asBen runs a command line as ben would type it, with the real kubectl.
func asBen(t *testing.T, line string) {
	t.Helper()
	cfg, err := world.Env.User(approver)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := world.Env.Kubeconfig("ben", cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

func deny(t *testing.T, g *v1alpha1.PermissionGrant) {
	t.Helper()
	asBen(t, fmt.Sprintf(`kubectl -n %s patch permissiongrant %s --type=json -p '[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Deny","shownDigest":"%s"}}]'`,
		g.Namespace, g.Name, g.Spec.Request.Digest))
}

// eventsOf are the reasons of the Kubernetes events about a grant.
func eventsOf(t *testing.T, g *v1alpha1.PermissionGrant) (reasons []string) {
	t.Helper()
	var list corev1.EventList
	if err := world.Admin.List(t.Context(), &list, client.InNamespace(g.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].InvolvedObject.UID == g.UID {
			reasons = append(reasons, list.Items[i].Reason)
		}
	}
	return reasons
}

var errNotYet = errors.New("not yet")

func metric(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	value, err := world.Manager.Counter(context.WithoutCancel(t.Context()), name, labels)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
