package env_test

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// expectComponentsEndAndComeBack stops the whole control plane in order, and starts it.
func expectComponentsEndAndComeBack(t *testing.T, e *env.Env) {
	t.Helper()
	configMaps := kubernetes.NewForConfigOrDie(e.Admin()).CoreV1().ConfigMaps("checkout")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := configMaps.Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for component, signal := range map[env.Component]syscall.Signal{env.ControllerManager: syscall.SIGKILL, env.KubeAPIServer: syscall.SIGTERM} {
		if err := e.End(t.Context(), component, signal); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.End(t.Context(), env.Etcd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
		t.Error("the API server answers without its process")
	}
	for _, component := range []env.Component{env.Etcd, env.KubeAPIServer, env.ControllerManager} {
		if err := e.Restart(t.Context(), component); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := configMaps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}
