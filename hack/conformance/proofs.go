package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// proof is one test that names one requirement.
type proof struct {
	id   string
	file string // slash-separated, relative to the repository
	test string // the test function, the table, or the scenario
}

var (
	goClaim = regexp.MustCompile(`\bProves ([A-Z]-[0-9]+(?:(?:, | and |, and )[A-Z]-[0-9]+)*)`)
	goLoose = regexp.MustCompile(`^//\s*Proves\b`)
	oneID   = regexp.MustCompile(`[A-Z]-[0-9]+`)
)

// findProofs reads the repository's test files and scenarios, without what is built into bin and dist.
func findProofs(repository fs.FS) ([]proof, error) {
	var proofs []proof
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == "bin" || name == "dist" || name == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		find := finderFor(name)
		if find == nil {
			return nil
		}
		content, err := fs.ReadFile(repository, name)
		if err != nil {
			return err
		}
		found, err := find(name, content)
		proofs = append(proofs, found...)
		return err
	})
	return proofs, err
}

type finder func(file string, content []byte) ([]proof, error)

func finderFor(file string) finder {
	top, _, _ := strings.Cut(file, "/")
	switch {
	case strings.HasSuffix(file, "_test.go"):
		return goProofs
	case (top == "policy" || top == "test") && path.Ext(file) == ".yaml":
		return yamlProofs
	default:
		return nil
	}
}

// goProofs finds the claims in the comments of a Go test file. The test is the declaration around or below the comment.
func goProofs(file string, content []byte) ([]proof, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var proofs []proof
	for _, comments := range parsed.Comments {
		for _, comment := range comments.List {
			claims := goClaim.FindAllStringSubmatch(comment.Text, -1)
			if claims == nil && goLoose.MatchString(comment.Text) {
				return nil, fmt.Errorf("%s: %q names no requirement", files.Position(comment.Pos()), comment.Text)
			}
			if claims == nil {
				continue
			}
			test := declarationAt(parsed, comment.Pos())
			if test == "" {
				return nil, fmt.Errorf("%s: %q belongs to no test", files.Position(comment.Pos()), comment.Text)
			}
			for _, claim := range claims {
				for _, id := range oneID.FindAllString(claim[1], -1) {
					proofs = append(proofs, proof{id: id, file: file, test: test})
				}
			}
		}
	}
	return proofs, nil
}

// declarationAt names the top-level function or variable whose text or doc comment covers the position.
func declarationAt(file *ast.File, at token.Pos) string {
	for _, declaration := range file.Decls {
		start := declaration.Pos()
		name := ""
		var doc *ast.CommentGroup
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			name, doc = d.Name.Name, d.Doc
		case *ast.GenDecl:
			doc = d.Doc
			if len(d.Specs) == 1 {
				if spec, ok := d.Specs[0].(*ast.ValueSpec); ok {
					name = spec.Names[0].Name
				}
			}
		}
		if doc != nil {
			start = doc.Pos()
		}
		if start <= at && at < declaration.End() {
			return name
		}
	}
	return ""
}

// yamlProofs finds, at any depth, mappings with a name and a list of requirements under "proves".
func yamlProofs(file string, content []byte) ([]proof, error) {
	if !bytes.Contains(content, []byte("proves:")) {
		return nil, nil
	}
	var proofs []proof
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return proofs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found, err := scenarioProofs(file, &document)
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, found...)
	}
}

func scenarioProofs(file string, node *yaml.Node) ([]proof, error) {
	var proofs []proof
	if node.Kind == yaml.MappingNode {
		var scenario struct {
			Name   string   `yaml:"name"`
			Proves []string `yaml:"proves"`
		}
		if hasKey(node, "proves") {
			if err := node.Decode(&scenario); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, node.Line, err)
			}
			if scenario.Name == "" || len(scenario.Proves) == 0 {
				return nil, fmt.Errorf("%s:%d: proves needs a name beside it and at least one requirement", file, node.Line)
			}
		}
		for _, id := range scenario.Proves {
			proofs = append(proofs, proof{id: id, file: file, test: scenario.Name})
		}
	}
	for _, child := range node.Content {
		found, err := scenarioProofs(file, child)
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, found...)
	}
	return proofs, nil
}

func hasKey(mapping *yaml.Node, key string) bool {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return true
		}
	}
	return false
}
