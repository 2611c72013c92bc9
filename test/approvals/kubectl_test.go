package approvals_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Proves K-4: with kubectl alone, by people who hold stepbeyond-approver and nothing else.
func TestPlainKubectlAnswers(t *testing.T) {
	h := home(t, "plain", cluster.Profile)
	asked := func(t *testing.T, name string) *v1alpha1.PermissionGrant {
		t.Helper()
		must(t, configMap(h.Namespace, name))
		g := ask(t, h, remove(configMap(h.Namespace, name)))
		return becomes(t, g, v1alpha1.GrantPending)
	}
	does := func(t *testing.T, name string) {
		t.Helper()
		if err := remove(configMap(h.Namespace, name))(t.Context(), h.Agent); err != nil {
			t.Errorf("what was approved: %v", err)
		}
	}
	t.Run("by the printed command, in a shell", func(t *testing.T) {
		g := asked(t, "patched")
		binary, err := env.Asset("kubectl")
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := shared.Env.Kubeconfig("carla", carla.config, "")
		if err != nil {
			t.Fatal(err)
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", g.Status.ApproveCommand)
		shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		if want := "permissiongrant.stepbeyond.dev/" + g.Name + " patched\n"; err != nil || string(out) != want {
			t.Fatalf("%s: %v %s, want %q", g.Status.ApproveCommand, err, out, want)
		}
		does(t, "patched")
	})
	t.Run("by kubectl edit", func(t *testing.T) {
		g := asked(t, "edited")
		editor := filepath.Join(t.TempDir(), "editor")
		script := "#!/bin/sh\nsed -i 's/^  decisions: \\[\\]$/  decisions:\\n  - verdict: Approve\\n    shownDigest: " + g.Spec.Request.Digest + "/' \"$1\"\n"
		if err := os.WriteFile(editor, []byte(script), 0o700); err != nil { //nolint:gosec // kubectl runs it
			t.Fatal(err)
		}
		out, err := carla.kubectl(t.Context(), t, []string{"KUBE_EDITOR=" + editor}, "-n", h.Namespace, "edit", "permissiongrant", g.Name)
		if err != nil || !strings.Contains(out, g.Name+" edited") {
			t.Fatalf("%v %s", err, out)
		}
		does(t, "edited")
	})
	t.Run("by kubectl edit with a digest that was not shown", func(t *testing.T) {
		g := asked(t, "mistaken")
		editor := filepath.Join(t.TempDir(), "editor")
		script := "#!/bin/sh\nsed -i 's/^  decisions: \\[\\]$/  decisions:\\n  - verdict: Approve\\n    shownDigest: v1:" + strings.Repeat("0", 64) + "/' \"$1\"\n"
		if err := os.WriteFile(editor, []byte(script), 0o700); err != nil { //nolint:gosec // kubectl runs it
			t.Fatal(err)
		}
		out, err := carla.kubectl(t.Context(), t, []string{"KUBE_EDITOR=" + editor}, "-n", h.Namespace, "edit", "permissiongrant", g.Name)
		if err == nil || !strings.Contains(out, "is invalid") {
			t.Errorf("%v %s", err, out)
		}
		if now := grant(t, g.Namespace, g.Name); len(now.Spec.Decisions) > 0 {
			t.Errorf("answered with %+v", now.Spec.Decisions)
		}
	})
	for _, verdict := range []v1alpha1.Verdict{v1alpha1.VerdictApprove, v1alpha1.VerdictDeny} {
		t.Run("kubectl wait returns on "+string(verdict), func(t *testing.T) {
			g := asked(t, "waited-"+strings.ToLower(string(verdict)))
			ended := make(chan error, 1)
			go func() {
				out, err := vera.kubectl(t.Context(), t, nil, "-n", h.Namespace, "wait", "--for=condition=Decided", "--timeout=60s", "permissiongrant/"+g.Name)
				if err == nil && !strings.Contains(out, "condition met") {
					t.Errorf("kubectl wait printed %q", out)
				}
				ended <- err
			}()
			select {
			case err := <-ended:
				t.Fatalf("kubectl wait ended before anybody answered: %v", err)
			case <-time.After(2 * time.Second):
			}
			decide(t, carla, g, verdict)
			if err := <-ended; err != nil {
				t.Errorf("kubectl wait: %v", err)
			}
		})
	}
}
