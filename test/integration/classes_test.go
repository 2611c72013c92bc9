package integration_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Proves C-1, C-2, C-5.
func TestRequestsOfARealAPIServerGetTheirClass(t *testing.T) {
	const ns = "classes"
	h := at(t, ns)
	kept := configMap(ns, "kept")
	kept.Finalizers = []string{"acme.example/keep"}
	must(t, deployment(ns, "people"), deployment(ns, "stopped"), service(ns, "people"), agentPod(ns, "people-0", "default", nil), configMap(ns, "people"), kept, secret(ns, "people"),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data"}, Spec: claimSpec()})
	for _, object := range []client.Object{deployment(ns, "own"), configMap(ns, "own"), agentPod(ns, "own-0", "default", nil), service(ns, "own")} {
		if got := h.agent.try(t, create(object)); got.outcome != allowed("AUTO", "Allowed") {
			t.Fatalf("creating %s: %+v %s", object.GetName(), got.outcome, got.message)
		}
	}
	awaitRollout(t, ns, "stopped")
	ownPod := podOf(t, ns, "own", "registry.acme.example/main:1")
	reference := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	auto, disclosed := allowed("AUTO", "Allowed"), allowed("AUTO_WITH_DISCLOSURE", "Disclosed")
	asks := pending("PermissionPending")
	// connected passes admission; then there is no kubelet.
	connected := outcome{Code: 400, Status: "BadRequest", Class: "AUTO", Verdict: "Allow", Reason: "Allowed"}
	tests := []struct {
		name    string
		request func(context.Context, *actor) error
		want    outcome
	}{
		{"exec in an own Pod", execute(ns, "own-0", "date"), connected},
		{"exec in a Pod of an own Deployment", execute(ns, ownPod, "date"), connected},
		{"exec in an own Pod with stdin", connect(ns, "own-0", "exec", &corev1.PodExecOptions{Command: []string{"sh"}, Stdin: true, TTY: true, Stdout: true}), asks},
		{"exec in a foreign Pod", execute(ns, "people-0", "date"), asks},
		{"attach to an own Pod", connect(ns, "own-0", "attach", &corev1.PodAttachOptions{Stdout: true}), asks},
		{"port-forward to an own Pod", connect(ns, "own-0", "portforward", &corev1.PodPortForwardOptions{Ports: []int32{80}}), asks},
		{"an ephemeral container in an own Pod", func(ctx context.Context, a *actor) error {
			patch := `{"spec":{"ephemeralContainers":[{"name":"debug","image":"registry.acme.example/debug:1"}]}}`
			_, err := a.core.CoreV1().Pods(ns).Patch(ctx, "own-0", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "ephemeralcontainers")
			return err
		}, asks},
		{"eviction of a foreign Pod", evict(ns, "people-0"), asks},
		{"deletion of a foreign Pod", remove(agentPod(ns, "people-0", "", nil)), asks},
		{"eviction of an own Pod", evict(ns, "own-0"), auto},
		{"deletion of all ConfigMaps", func(ctx context.Context, a *actor) error {
			return a.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns), client.MatchingFields{"metadata.name": "people"})
		}, denied("ASK", "Unnamed", "Unnamed")},
		{"scale of a foreign Deployment", merge(reference("people"), `{"spec":{"replicas":3}}`), disclosed},
		{"scale of a foreign Deployment to 0", scaled(ns, "stopped", 0), asks},
		{"scale of an own Deployment to 0", scaled(ns, "own", 0), auto},
		{"removal of a foreign finalizer", merge(kept, `{"metadata":{"finalizers":null}}`), asks},
		{"an owner for a foreign object", merge(configMap(ns, "people"), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"own","uid":"11111111-2222-3333-4444-555555555555"}]}}`), asks},
		{"another selector of a foreign Service", merge(service(ns, "people"), `{"spec":{"selector":{"app":"own"}}}`), asks},
		{"a LoadBalancer", merge(service(ns, "own"), `{"spec":{"type":"LoadBalancer"}}`), asks},
		{"a new Secret", create(secret(ns, "new")), asks},
		{"an Ingress", create(ingress(ns, "route")), asks},
		{"a Namespace", create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agents-own"}}), asks},
		{"a kind that nobody named", create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "helper"}}), asks},
		{"deletion of a claim", remove(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data"}}), asks},
		{"deletion of a Secret", remove(secret(ns, "people")), asks},
		{"a ConfigMap in another namespace", create(configMap("free", "other")), denied("FORBIDDEN", "Forbidden", "OutsideAuthority")},
		{"a ConfigMap in another governed namespace", create(configMap("forms", "other")), denied("FORBIDDEN", "Forbidden", "OutsideAuthority")},
		{"deletion of an own Deployment", remove(reference("own")), auto},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := h.agent.try(t, tt.request)
			if diff := cmp.Diff(tt.want, got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
			if got.Verdict != "Pending" {
				return
			}
			if request := h.grant(t, got.grant).Spec.Request; len(request.Facts)+len(request.Rules) == 0 {
				t.Errorf("permissiongrant %s does not say why it asks", got.grant)
			}
		})
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(configMap(ns, "people")), &corev1.ConfigMap{}); err != nil {
		t.Errorf("what the refused deletion of a collection selected: %v", err)
	}
}

// awaitRollout waits until the controllers have nothing left to write on a Deployment, whose pods nobody runs.
func awaitRollout(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, func() error {
		var d appsv1.Deployment
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || len(s.Conditions) < 2 {
			return fmt.Errorf("Deployment %s: status %+v", name, s)
		}
		return nil
	})
}
