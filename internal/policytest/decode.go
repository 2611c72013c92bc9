package policytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/internal/policytest/crdschema"
)

// unmarshal reads JSON with integers kept whole. Unknown and duplicate fields are errors that name their path.
func unmarshal(source []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(source, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

// document is one YAML document of a file.
type document struct {
	place  string // "policy.yaml, document 2"
	source []byte // as JSON
}

// documents splits a file.
func documents(folder fs.FS, file string) ([]document, error) {
	content, err := fs.ReadFile(folder, file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return split(file, content)
}

// split reads the documents of a file. Empty documents count and are left out.
func split(file string, content []byte) ([]document, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var found []document
	for n := 1; ; n++ {
		place := file
		if n > 1 {
			place = fmt.Sprintf("%s, document %d", file, n)
		}
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		source, err := yaml.YAMLToJSONStrict(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", place, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if !bytes.Equal(source, []byte("null")) {
			found = append(found, document{place: place, source: source})
		}
	}
}

// decode reads the document strictly; errors name the file and the field.
func (d document) decode(into any) error {
	if err := unmarshal(d.source, into); err != nil {
		return fmt.Errorf("%s: %w", d.place, err)
	}
	return nil
}

// admit reads the document as an API server does, with the defaults of its kind's schema. It errs with everything that
// is wrong at once; each error names file, document and field. A kind of which we have no schema is only read.
func (d document) admit(kind schema.GroupVersionKind, into any) error {
	known, err := crdschema.Of(kind)
	if err != nil {
		return fmt.Errorf("read the embedded definitions: %w", err)
	}
	if known == nil {
		return d.decode(into)
	}
	var content map[string]any
	if err := d.decode(&content); err != nil {
		return err
	}
	var problems []error
	for _, problem := range known.Admit(content) {
		problems = append(problems, fmt.Errorf("%s: %w", d.place, problem))
	}
	completed, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("%s: %w", d.place, err)
	}
	strict, err := kjson.UnmarshalStrict(completed, into)
	if err != nil && len(problems) == 0 { // else the schema named the wrong type already, and by its path
		problems = append(problems, fmt.Errorf("%s: %w", d.place, err))
	}
	for _, unknown := range strict {
		problems = append(problems, fmt.Errorf("%s: %w", d.place, unknown))
	}
	return errors.Join(problems...)
}

// one reads a file that holds exactly one document.
func one(folder fs.FS, file string, into any) error {
	found, err := documents(folder, file)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%s: holds %d documents, want one", file, len(found))
	}
	return found[0].decode(into)
}
