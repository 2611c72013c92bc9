package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// tested are the packages whose tests may kill a mutant.
var tested = []string{"./policy/...", "./internal/policytest"}

// goPackage is what the go command tells about a package.
type goPackage struct {
	ImportPath                string
	Module                    struct{ Path string }
	Deps                      []string
	TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles []string
}

func (p *goPackage) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

func (p *goPackage) usesRapid() bool {
	return slices.Contains(slices.Concat(p.TestImports, p.XTestImports), "pgregory.net/rapid")
}

// listPackages asks the go command for the packages that are tested.
func listPackages(root string) ([]goPackage, error) {
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Module,Deps,TestImports,XTestImports,TestGoFiles,XTestGoFiles"}, tested...)...)
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// concerned are the tested packages that a change of a file reaches: its own first, then those that depend on it in code
// or tests, the fewest dependencies first.
func concerned(packages []goPackage, file string) []goPackage {
	var own string
	reached := map[string]bool{}
	for i := range packages {
		p := &packages[i]
		if path.Join(p.Module.Path, path.Dir(file)) == p.ImportPath {
			own = p.ImportPath
		}
	}
	for i := range packages {
		if p := &packages[i]; p.ImportPath == own || slices.Contains(p.Deps, own) {
			reached[p.ImportPath] = true
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(packages), func(a, b goPackage) int {
		if (a.ImportPath == own) != (b.ImportPath == own) {
			if a.ImportPath == own {
				return -1
			}
			return 1
		}
		return len(a.Deps) - len(b.Deps)
	})
	var list []goPackage
	for i := range sorted {
		p := &sorted[i]
		inTests := slices.ContainsFunc(slices.Concat(p.TestImports, p.XTestImports), func(imported string) bool { return reached[imported] })
		if p.hasTests() && (reached[p.ImportPath] || inTests) {
			list = append(list, *p)
		}
	}
	return list
}
