// Package structure_test holds the tests about the tree itself: what may import what, how long things may be, and
// which words do not belong in it. Every rule is a function over plain inputs with a table of inputs that break it,
// and one test that applies it to the repository.
package structure_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "stepbeyond.dev/stepbeyond"

// root is the repository's top folder, seen from this package.
var root = filepath.Join("..", "..", "..")

// source is one file of the repository.
type source struct {
	path string // slash-separated, relative to root
	text string
}

// goCommand runs the go command in the repository and returns what it prints.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// packages lists the module's own packages with their whole dependencies.
func packages(t *testing.T) []goPackage {
	t.Helper()
	var list []goPackage
	decoder := json.NewDecoder(bytes.NewReader(goCommand(t, "list", "-json=ImportPath,Name,Imports,Deps", "./...")))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// sources reads the files whose names end in one of the suffixes, without build output and version control.
func sources(t *testing.T, suffixes ...string) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, relative) {
			return fs.SkipDir
		}
		matches := slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(relative, s) })
		if !entry.Type().IsRegular() || !matches {
			return nil
		}
		text, err := os.ReadFile(name)
		list = append(list, source{relative, string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("no file ends in any of %q", suffixes)
	}
	return list
}

// report fails the test with every complaint.
func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, complaint := range complaints {
		t.Error(complaint)
	}
}
