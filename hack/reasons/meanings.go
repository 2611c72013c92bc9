package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// meaning is a reason and what its constant's comment says.
type meaning struct {
	reason policy.Reason
	text   string
}

// parse reads the constants of type Reason in the order of the file. A comment must begin with the constant's name and a
// colon; the error names those that do not.
func parse(source []byte) ([]meaning, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var meanings []meaning
	var problems []error
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			if name, ok := value.Type.(*ast.Ident); !ok || name.Name != "Reason" {
				continue
			}
			m, err := meaningOf(value)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			meanings = append(meanings, m)
		}
	}
	if len(meanings) == 0 && len(problems) == 0 {
		return nil, errors.New("has no constants of type Reason")
	}
	return meanings, errors.Join(problems...)
}

func meaningOf(value *ast.ValueSpec) (meaning, error) {
	name := value.Names[0].Name
	literal, ok := value.Values[0].(*ast.BasicLit)
	if !ok {
		return meaning{}, fmt.Errorf("%s: is no literal", name)
	}
	code, err := strconv.Unquote(literal.Value)
	if err != nil {
		return meaning{}, fmt.Errorf("%s: %w", name, err)
	}
	text, ok := strings.CutPrefix(strings.Join(strings.Fields(value.Doc.Text()), " "), name+": ")
	if !ok || text == "" {
		return meaning{}, fmt.Errorf("%s: its comment must be %q and a sentence", name, name+": ")
	}
	return meaning{reason: policy.Reason(code), text: strings.ToUpper(text[:1]) + text[1:]}, nil
}
