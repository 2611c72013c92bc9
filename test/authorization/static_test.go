package authorization_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const guard = "ValidatingAdmissionPolicy 'stepbeyond-guard.static.k8s.io' with binding 'stepbeyond-guard.static.k8s.io' denied request: Forbidden: "

// Proves K-2, K-10: without the authorization webhook a static policy keeps agents from what decides about admission,
// also from what Kubernetes shows to no other policy, and goes with nothing that can be deleted through the API.
func TestTheStaticPolicyGuardsWhatNoOtherPolicySees(t *testing.T) {
	c, err := cluster.StartWith(t.Context(), env.Options{ControllerManager: true, WithoutAuthorizer: true, StaticManifests: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	agent, bystander, err := callers(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	policy := dryDelete(admission + "/validatingadmissionpolicies/stepbeyond-floor-self")
	eventually(t, func() error {
		if err := policy(t.Context(), t, agent); err == nil || !strings.Contains(err.Error(), guard) {
			return fmt.Errorf("the agent deletes a floor policy: %w", err)
		}
		return nil
	})
	if err := c.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]request{
		"a policy": policy, "a binding": dryDelete(admission + "/validatingadmissionpolicybindings/stepbeyond-floor-pods"),
		"all bindings": dryDelete(admission + "/validatingadmissionpolicybindings"), "a binding of its own": createBinding,
		"the webhook": dryDelete(admission + "/validatingwebhookconfigurations/stepbeyond"), "the stamping webhook": dryDelete(admission + "/mutatingwebhookconfigurations/stepbeyond"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := r(t.Context(), t, agent); !refusedInAdmission(err) {
				t.Errorf("the agent: %v", err)
			}
			for who, cfg := range map[string]func() error{
				"the bystander": func() error { return r(t.Context(), t, bystander) }, "the administrator": func() error { return r(t.Context(), t, c.Env.Admin()) },
			} {
				if err := cfg(); apierrors.IsForbidden(err) || apierrors.IsInternalError(err) {
					t.Errorf("%s: %v", who, err)
				}
			}
		})
	}
}

func refusedInAdmission(err error) bool {
	return err != nil && strings.Contains(err.Error(), guard)
}

// The script is what ships for hosts; it and the control plane of the tests put the same files in the same places.
func TestTheScriptWritesTheFilesOfTheSecret(t *testing.T) {
	awaitAuthorizer(t)
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := shared.Env.Kubeconfig("host", shared.Env.Admin(), "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sync := func() {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "config/authorization/sync.sh"), dir)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	sync()
	sync() // once more over what is there
	var secret corev1.Secret
	if err := shared.Admin.Get(context.Background(), client.ObjectKey{Namespace: env.SystemNamespace, Name: "stepbeyond-control-plane"}, &secret); err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for name := range maps.Keys(secret.Data) {
		path := name
		if name == "static-manifests.yaml" {
			path = "static-manifests/" + name
		}
		want[path] = string(secret.Data[name])
	}
	for name := range want {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 3 {
		t.Errorf("%d files (-want +got):\n%s", len(want), diff)
	}
}
