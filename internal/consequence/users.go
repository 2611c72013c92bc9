package consequence

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxPods bounds how many Pods of a namespace are looked at; with more, what is said is at least so.
const maxPods = 500

// maxNames bounds how many objects are named in one line.
const maxNames = 5

// podList is the Pods of a namespace that have not ended.
type podList struct {
	live []corev1.Pod
	// more: there are Pods that were not looked at.
	more bool
	// failed says why they could not be read; empty when they were.
	failed string
}

// pods of the request's namespace, read once.
func (l *look) pods(ctx context.Context) *podList {
	if l.podList != nil {
		return l.podList
	}
	l.podList = &podList{}
	namespace := l.req.Namespace
	if l.kind() == namespaces {
		namespace = l.req.Name
	}
	var list corev1.PodList
	if err := l.live.List(ctx, &list, client.InNamespace(namespace), client.Limit(maxPods)); err != nil {
		l.podList.failed = why(err)
		return l.podList
	}
	l.podList.more = list.Continue != ""
	for i := range list.Items {
		if phase := list.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			l.podList.live = append(l.podList.live, list.Items[i])
		}
	}
	return l.podList
}

// podsThat names the Pods that fit. ok is false, with a line that says so, when they could not be read.
func (l *look) podsThat(ctx context.Context, fit func(*corev1.Pod) bool) (found []string, ok bool) {
	list := l.pods(ctx)
	if list.failed != "" {
		l.effect("the Pods of the namespace could not be read (%s)", list.failed)
		return nil, false
	}
	for i := range list.live {
		if fit(&list.live[i]) {
			found = append(found, list.live[i].Name)
		}
	}
	return found, true
}

// counted says how many Pods, and their names: "2 Pods: web-0, web-1".
func (l *look) counted(names []string) string {
	slices.Sort(names)
	count := fmt.Sprintf("%d Pods", len(names))
	if len(names) == 1 {
		count = "1 Pod"
	}
	if l.podList != nil && l.podList.more {
		count = "at least " + count
	}
	if len(names) == 0 {
		return count
	}
	shown := strings.Join(names[:min(len(names), maxNames)], ", ")
	if rest := len(names) - maxNames; rest > 0 {
		shown += fmt.Sprintf(" and %d more", rest)
	}
	return count + ": " + shown
}

// usedBy tells which Pods read a Secret or a ConfigMap.
func (l *look) usedBy(ctx context.Context, use func(*corev1.PodSpec) (files, env bool)) {
	readsEnv := false
	found, ok := l.podsThat(ctx, func(pod *corev1.Pod) bool {
		files, env := use(&pod.Spec)
		readsEnv = readsEnv || env
		return files || env
	})
	switch {
	case !ok:
	case len(found) == 0 && !l.podList.more:
		l.effect("no Pod of the namespace reads it now")
	default:
		l.effect("read by %s", l.counted(found))
	}
	if readsEnv {
		l.effect("Pods that read it as environment keep what they have until they start anew")
	}
}

// usesSecret tells how a Pod reads the Secret of a name: as files or for pulling images, and as environment.
func usesSecret(name string) func(*corev1.PodSpec) (files, env bool) {
	return func(spec *corev1.PodSpec) (files, env bool) {
		for i := range spec.Volumes {
			v := &spec.Volumes[i].VolumeSource
			files = files || v.Secret != nil && v.Secret.SecretName == name
			if v.Projected != nil {
				files = files || slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool { return p.Secret != nil && p.Secret.Name == name })
			}
		}
		files = files || slices.ContainsFunc(spec.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name == name })
		return files, readsEnv(spec, func(from *corev1.EnvVarSource, all *corev1.EnvFromSource) bool {
			return from != nil && from.SecretKeyRef != nil && from.SecretKeyRef.Name == name || all != nil && all.SecretRef != nil && all.SecretRef.Name == name
		})
	}
}

func usesConfigMap(name string) func(*corev1.PodSpec) (files, env bool) {
	return func(spec *corev1.PodSpec) (files, env bool) {
		for i := range spec.Volumes {
			v := &spec.Volumes[i].VolumeSource
			files = files || v.ConfigMap != nil && v.ConfigMap.Name == name
			if v.Projected != nil {
				files = files || slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool { return p.ConfigMap != nil && p.ConfigMap.Name == name })
			}
		}
		return files, readsEnv(spec, func(from *corev1.EnvVarSource, all *corev1.EnvFromSource) bool {
			return from != nil && from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name == name || all != nil && all.ConfigMapRef != nil && all.ConfigMapRef.Name == name
		})
	}
}

// readsEnv asks about every source of environment in a Pod; one of the two is nil.
func readsEnv(spec *corev1.PodSpec, reads func(*corev1.EnvVarSource, *corev1.EnvFromSource) bool) bool {
	container := func(c *corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return reads(e.ValueFrom, nil) }) ||
			slices.ContainsFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool { return reads(nil, &e) })
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if container(&containers[i]) {
				return true
			}
		}
	}
	return false
}

// claimOf tells whether a Pod mounts the claim of a name.
func claimOf(name string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == name
		})
	}
}
