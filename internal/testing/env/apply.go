package env

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner owns the fields that Apply sets.
const fieldOwner = client.FieldOwner("stepbeyond-env")

// Apply server-side-applies objects as administrator, in order. Before the next object is applied, a
// CustomResourceDefinition is served and, with ControllerManager, a Namespace has its default ServiceAccount.
func (e *Env) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	c, err := client.New(e.admin, client.Options{})
	if err != nil {
		return fmt.Errorf("client of the administrator: %w", err)
	}
	for _, object := range objects {
		object = object.DeepCopy() // the answer is written into what is sent
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
		if err := e.awaitUsable(ctx, c, object); err != nil {
			return fmt.Errorf("wait for %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (e *Env) awaitUsable(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	switch kind := object.GetKind(); {
	case kind == "CustomResourceDefinition":
		return poll(ctx, nil, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			return established(object)
		})
	case kind == "Namespace" && e.controllerManager:
		return poll(ctx, nil, func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: object.GetName(), Name: "default"}, &corev1.ServiceAccount{})
		})
	default:
		return nil
	}
}

func established(crd *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return nil
		}
	}
	return errors.New("condition Established is not True yet")
}

// ApplyKustomization renders a kustomization of the repository, for example config/default, with the real kubectl, and
// applies all of it but the given kinds: namespaces first, then CustomResourceDefinitions, then the rest.
func (e *Env) ApplyKustomization(ctx context.Context, folder string, without ...string) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	kubectl, err := Asset("kubectl")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, kubectl, "kustomize", filepath.Join(root, folder))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("kubectl kustomize %s: %w: %s", folder, err, complaint.Bytes())
	}
	objects, err := Decode(text)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return slices.Contains(without, o.GetKind()) })
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(order(a), order(b)) })
	return e.Apply(ctx, objects...)
}

func order(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	default:
		return 2
	}
}

// Read decodes files, and the .yaml files directly in folders, in lexical order. Relative paths start at the root of
// the repository.
func Read(paths ...string) ([]*unstructured.Unstructured, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		} else if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
				return nil, fmt.Errorf("manifests: %w", err)
			}
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("manifest: %w", err)
			}
			more, err := Decode(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, more...)
		}
	}
	return objects, nil
}

// Decode reads the objects of one YAML text; empty documents are skipped.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("object %d: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
