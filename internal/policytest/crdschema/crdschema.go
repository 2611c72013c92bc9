// Package crdschema does with an object what an API server does with it by our custom resource definitions alone: it
// fills in defaults and refuses what the schema or one of its CEL rules refuses, with the same fields and messages. It
// runs the API server's own libraries; a test compares the answers of both.
package crdschema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/config/crd"
)

// Kind checks the objects of one version of one kind. It is safe for concurrent use.
type Kind struct {
	namespaced bool
	status     bool // is a subresource, so that no create sets it
	structural *schema.Structural
	values     validation.SchemaValidator
	// rules are compiled when the first object is checked; nil when the schema has none.
	rules func() *cel.Validator
}

var load = sync.OnceValues(func() (map[runtimeschema.GroupVersionKind]*Kind, error) { return read(crd.Bases) })

// Of finds a kind among the embedded definitions; nil when none defines it. It errs when a definition cannot be read.
func Of(kind runtimeschema.GroupVersionKind) (*Kind, error) {
	kinds, err := load()
	return kinds[kind], err
}

// read makes the kinds of all definitions in folder bases.
func read(folder fs.FS) (map[runtimeschema.GroupVersionKind]*Kind, error) {
	files, err := fs.Glob(folder, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the definitions: %w", err)
	}
	kinds := map[runtimeschema.GroupVersionKind]*Kind{}
	var problems []error
	for _, file := range files {
		if err := add(kinds, folder, file); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
		}
	}
	return kinds, errors.Join(problems...)
}

func add(kinds map[runtimeschema.GroupVersionKind]*Kind, folder fs.FS, file string) error {
	content, err := fs.ReadFile(folder, file)
	if err != nil {
		return err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &definition); err != nil {
		return err
	}
	for i := range definition.Spec.Versions {
		version := &definition.Spec.Versions[i]
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			return fmt.Errorf("spec.versions[%d].schema.openAPIV3Schema: is required", i)
		}
		kind, err := newKind(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return fmt.Errorf("spec.versions[%d].schema.openAPIV3Schema: %w", i, err)
		}
		kind.namespaced = definition.Spec.Scope == apiextensionsv1.NamespaceScoped
		kind.status = version.Subresources != nil && version.Subresources.Status != nil
		kinds[runtimeschema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}] = kind
	}
	return nil
}

func newKind(external *apiextensionsv1.JSONSchemaProps) (*Kind, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	values, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	rules := sync.OnceValue(func() *cel.Validator { return cel.NewValidator(structural, true, celconfig.PerCallLimit) })
	return &Kind{structural: structural, values: values, rules: rules}, nil
}

// Admit is a create: it changes the object to what an API server would store, without the fields that a server gives,
// and returns everything that an API server would refuse it for, ordered by field. As there, CEL rules are left out while
// a value is missing or of a wrong type, and unknown fields are the decoder's affair. A list with too many entries is
// named without a look at the values of the object. Numbers are int64 or float64.
func (k *Kind) Admit(object map[string]any) field.ErrorList {
	defaulting.Default(object, k.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.structural)
	if k.status {
		delete(object, "status")
	}
	if !k.namespaced {
		unstructured.RemoveNestedField(object, "metadata", "namespace") // a server clears it and does not mind
	}
	problems := k.metadata(object)
	if lists := tooLong(nil, object, k.structural); len(lists) > 0 {
		problems = append(problems, lists...)
	} else {
		problems = append(problems, k.content(object)...)
	}
	slices.SortFunc(problems, func(a, b *field.Error) int { // the validator walks maps
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.ErrorBody(), b.ErrorBody()))
	})
	return problems
}

// content checks the values and, where nothing keeps them from being evaluated, the CEL rules.
func (k *Kind) content(object map[string]any) field.ErrorList {
	ctx := context.Background()
	problems := validation.ValidateCustomResource(nil, object, k.values)
	problems = append(problems, objectmeta.Validate(ctx, nil, object, k.structural, false)...)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	if rules := k.rules(); rules != nil && !slices.ContainsFunc(problems, stopsRules) {
		broken, _ := rules.Validate(ctx, nil, k.structural, object, nil, celconfig.RuntimeCELCostBudget)
		problems = append(problems, broken...)
	}
	return problems
}

// tooLong names every list that has more entries than its schema allows, and looks into none of these. The validator
// compares each problem with every other: 20,000 bad entries would take it a minute.
func tooLong(path *field.Path, value any, s *schema.Structural) field.ErrorList {
	var problems field.ErrorList
	switch value := value.(type) {
	case []any:
		if s.ValueValidation != nil && s.ValueValidation.MaxItems != nil && int64(len(value)) > *s.ValueValidation.MaxItems {
			return field.ErrorList{field.TooMany(path, len(value), int(*s.ValueValidation.MaxItems))}
		}
		for i := range value {
			if s.Items != nil {
				problems = append(problems, tooLong(path.Index(i), value[i], s.Items)...)
			}
		}
	case map[string]any:
		for name := range value {
			if property, is := s.Properties[name]; is {
				problems = append(problems, tooLong(path.Child(name), value[name], &property)...)
			}
		}
	}
	return problems
}

// metadata checks names, labels and annotations.
func (k *Kind) metadata(object map[string]any) field.ErrorList {
	path := field.NewPath("metadata")
	meta, found, err := objectmeta.GetObjectMeta(object, false)
	if err != nil {
		return field.ErrorList{field.Invalid(path, object["metadata"], err.Error())}
	}
	if !found {
		meta = &metav1.ObjectMeta{}
	}
	return metavalidation.ValidateObjectMeta(meta, k.namespaced, metavalidation.NameIsDNSSubdomain, path)
}

// stopsRules tells the problems of a value that a CEL rule could not be evaluated on.
func stopsRules(problem *field.Error) bool {
	switch problem.Type {
	case field.ErrorTypeRequired, field.ErrorTypeTypeInvalid, field.ErrorTypeNotSupported, field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		return true
	default:
		return false
	}
}
