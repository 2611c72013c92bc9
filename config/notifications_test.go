package config_test

import (
	"bytes"
	"flag"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"stepbeyond.dev/stepbeyond/internal/manager"
	"stepbeyond.dev/stepbeyond/internal/managerconfig"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// rendered are the objects of a kustomization, as the real kubectl renders it.
func rendered(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), kubectl, "kustomize", filepath.Join(root, folder)).Output()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := env.Decode(bytes.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func typed(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatal(err)
	}
}

// What the example mounts is what its configuration names, where the manager looks for it.
func TestTheExampleOfNotificationsFitsTogether(t *testing.T) {
	var deployment appsv1.Deployment
	var configMap corev1.ConfigMap
	for _, object := range rendered(t, "config/notifications") {
		switch {
		case object.GetKind() == "Deployment":
			typed(t, object, &deployment)
		case object.GetKind() == "ConfigMap":
			typed(t, object, &configMap)
		case object.GetKind() == "Secret":
			t.Errorf("Secret %s is applied: it would replace the real one", object.GetName())
		}
	}
	container := &deployment.Spec.Template.Spec.Containers[0]
	var options manager.Options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	options.Bind(flags)
	if err := flags.Parse(container.Args); err != nil {
		t.Fatal(err)
	}
	if !options.LeaderElection {
		t.Error("the patch takes leader election away")
	}
	config, err := managerconfig.Parse([]byte(configMap.Data[path.Base(options.ConfigFile)]))
	if err != nil {
		t.Fatal(err)
	}
	mounted := map[string]corev1.VolumeSource{}
	for _, mount := range container.VolumeMounts {
		for _, volume := range deployment.Spec.Template.Spec.Volumes {
			if volume.Name == mount.Name {
				mounted[mount.MountPath] = volume.VolumeSource
			}
		}
	}
	if source := mounted[path.Dir(options.ConfigFile)].ConfigMap; source == nil || source.Name != configMap.Name {
		t.Errorf("ConfigMap %s is not mounted at %s", configMap.Name, options.ConfigFile)
	}
	secrets := examples(t)
	for _, n := range config.Notifications {
		for _, ref := range []*managerconfig.SecretRef{n.URLSecretRef, n.SigningSecretRef, n.AuthoritiesSecretRef} {
			if ref == nil {
				continue
			}
			source := mounted[path.Join(options.SecretsDirectory, ref.Name)].Secret
			if source == nil || source.SecretName != ref.Name || source.Optional == nil || !*source.Optional {
				t.Errorf("%s: Secret %s is not mounted where it is looked for, or the manager does not start without it", n.Name, ref.Name)
			}
			if !slices.Contains(secrets[ref.Name], ref.Key) {
				t.Errorf("%s: the example of Secret %s has no key %s", n.Name, ref.Name, ref.Key)
			}
		}
	}
}

// examples are the keys of the example Secrets, by name.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	objects, err := env.Read("config/notifications/secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for _, object := range objects {
		var secret corev1.Secret
		typed(t, object, &secret)
		for key := range secret.StringData {
			keys[secret.Name] = append(keys[secret.Name], key)
		}
	}
	return keys
}
