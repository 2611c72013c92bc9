package approvals_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

// Proves B-2, C-5, K-4: a grant says what happens, what else happens, and how to take it back, as the API server has it; the
// manager reads it with its own role.
func TestAGrantShowsWhatHappensWhatElseAndTheWayBack(t *testing.T) {
	h := home(t, "shown", cluster.Profile)
	ns := h.Namespace
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""), VolumeName: "pv-shown",
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}},
		},
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-shown"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")},
			AccessModes: claim.Spec.AccessModes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/shown"}},
			ClaimRef:               &corev1.ObjectReference{Namespace: ns, Name: "data"},
		},
	}
	db := podOf(ns, "db-0", "default")
	db.Labels = map[string]string{"app": "db"}
	db.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	db.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "password"}}}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"stringData":{"password":"hunter2-c0rrect"}}`}},
		StringData: map[string]string{"password": "hunter2-c0rrect"},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 5432, TargetPort: intstr.FromInt32(5432)}}},
	}
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		}},
	}
	must(t, volume, claim, secret, db, service, web)
	patch := func(object client.Object, text string, subresource ...string) func(context.Context, *cluster.Actor) error {
		return func(ctx context.Context, a *cluster.Actor) error {
			fresh := object.DeepCopyObject().(client.Object)
			if len(subresource) > 0 {
				return a.SubResource(subresource[0]).Patch(ctx, fresh, client.RawPatch(types.MergePatchType, []byte(text)))
			}
			return a.Patch(ctx, fresh, client.RawPatch(types.MergePatchType, []byte(text)))
		}
	}
	for _, tt := range []struct {
		name            string
		request         func(context.Context, *cluster.Actor) error
		change          []string // of which each must be there
		effects, undone []string
	}{
		{
			"a claim", remove(claim), []string{"options: defaults", "object: 20Gi, bound to pv-shown, created "},
			[]string{"used by 1 Pod: db-0; the deletion waits until no Pod uses it", "PersistentVolume pv-shown has reclaimPolicy Delete: its 20Gi are destroyed"},
			[]string{"none for the data, unless there is a snapshot or a backup"},
		},
		{
			"a Secret", patch(secret, `{"stringData":{"password":"hunter2-changed"}}`), []string{"data.password: v1:"},
			[]string{"read by 1 Pod: db-0", "Pods that read it as environment keep what they have until they start anew"},
			[]string{"put back the old values; they are not kept here and have to come from where they were made"},
		},
		{
			"a Service", patch(service, `{"spec":{"selector":{"app":"db"},"type":"NodePort"}}`), []string{"spec.type: ClusterIP -> NodePort", "spec.selector.app: v1:"},
			[]string{
				"until now it leads to 0 ready addresses; clients of the Service are led elsewhere", "its selector finds 1 Pod: db-0",
				"every node opens its ports (TCP 5432) to whoever reaches the node",
			},
			[]string{"put back the old values; those that change shows as v1: are not kept here: take them from Git or a backup"},
		},
		{
			"a scale to nothing", patch(web, `{"spec":{"replicas":0}}`, "scale"), []string{"spec.replicas: 2 -> 0"},
			[]string{"all its Pods (0 ready) are stopped: nothing of it is left to serve"}, []string{"put back the old values that stand under change"},
		},
		{
			"a Deployment", remove(web), []string{"options: defaults", "object: 2 replicas, created "},
			[]string{"its Pods (0 ready) are deleted with it"}, []string{"make it again from its manifest, in Git or a backup; its uid, status and history do not come back"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := ask(t, h, tt.request)
			request := &g.Spec.Request
			if diff := cmp.Diff(tt.effects, request.Effects); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.undone, request.Undo); diff != "" {
				t.Errorf("undo (-want +got):\n%s", diff)
			}
			for _, line := range tt.change {
				if !slices.ContainsFunc(request.Change, func(got string) bool { return strings.HasPrefix(got, line) }) {
					t.Errorf("the change does not say %q: %q", line, request.Change)
				}
			}
			if text := strings.Join(append(append(request.Change, request.Effects...), request.Undo...), "\n"); strings.Contains(text, "hunter2") {
				t.Errorf("a value of a Secret stands in %s", text)
			}
		})
	}
}

// Proves K-4: a new question says how many like it were answered before, as far as their grants are there.
func TestAQuestionSaysHowManyLikeItWereAnswered(t *testing.T) {
	h := home(t, "similar", cluster.Profile)
	var first *v1alpha1.PermissionGrant
	for i, verdict := range []v1alpha1.Verdict{v1alpha1.VerdictApprove, v1alpha1.VerdictDeny, v1alpha1.VerdictApprove} {
		target := configMap(h.Namespace, string(rune('a'+i)))
		must(t, target)
		g := becomes(t, ask(t, h, remove(target)), v1alpha1.GrantPending)
		if first == nil {
			first = g
			if g.Status.Similar != nil {
				t.Errorf("the first of its kind has %+v", g.Status.Similar)
			}
		}
		decide(t, carla, g, verdict)
		state := v1alpha1.GrantApproved
		if verdict == v1alpha1.VerdictDeny {
			state = v1alpha1.GrantDenied
		}
		becomes(t, g, state)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "other-kind"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	last := configMap(h.Namespace, "last")
	must(t, service, last)
	if g := becomes(t, ask(t, h, remove(service)), v1alpha1.GrantPending); g.Status.Similar != nil {
		t.Errorf("another kind has %+v", g.Status.Similar)
	}
	g := becomes(t, ask(t, h, remove(last)), v1alpha1.GrantPending)
	want := &v1alpha1.SimilarGrants{Approved: 2, Denied: 1, SinceTime: first.CreationTimestamp}
	if diff := cmp.Diff(want, g.Status.Similar); diff != "" {
		t.Errorf("similar (-want +got):\n%s", diff)
	}
	decide(t, carla, g, v1alpha1.VerdictApprove)
	if diff := cmp.Diff(want, becomes(t, g, v1alpha1.GrantApproved).Status.Similar); diff != "" {
		t.Errorf("similar changed after the answer (-want +got):\n%s", diff)
	}
}
