package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// timeout of one package's tests. A mutant that never ends is killed by it.
const timeout = 2 * time.Minute

// outcome is what became of a mutant.
type outcome string

const (
	killed         outcome = "killed"
	survived       outcome = "SURVIVED"
	doesNotCompile outcome = "DOES NOT COMPILE"
)

// try runs the tests against every mutant and prints what becomes of each. It errs unless all are killed.
func try(root string, mutants []mutant) error {
	packages, err := listPackages(root)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Println("mutants: the tests pass without any")
	for i := range packages {
		if output, err := fail(root, "", &packages[i]); err != nil {
			return err
		} else if output != nil {
			return fmt.Errorf("the tests fail without a mutant:\n%s", output)
		}
	}
	var bad []string
	for i := range mutants {
		m := &mutants[i]
		start := time.Now()
		became, by, err := tryOne(root, folder, packages, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("mutants: %d/%d %s %s%s, %s\n", i+1, len(mutants), m.name, became, by, time.Since(start).Round(time.Second))
		if became != killed {
			bad = append(bad, fmt.Sprintf("%s %s: %s", m.name, became, m.breaks))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d of %d mutants are not killed:\n  %s", len(bad), len(mutants), strings.Join(bad, "\n  "))
	}
	fmt.Printf("mutants: all %d are killed\n", len(mutants))
	return nil
}

// tryOne runs package after package until one fails. by is " by PACKAGE" for a killed mutant.
func tryOne(root, folder string, packages []goPackage, m *mutant) (became outcome, by string, err error) {
	overlay, err := writeOverlay(root, folder, m)
	if err != nil {
		return "", "", err
	}
	list := concerned(packages, m.path)
	if len(list) == 0 {
		return "", "", fmt.Errorf("no tested package depends on %s", m.path)
	}
	for i := range list {
		output, err := fail(root, overlay, &list[i])
		switch {
		case err != nil:
			return "", "", err
		case output == nil:
			continue
		case bytes.Contains(output, []byte("[build failed]")) || bytes.Contains(output, []byte("[setup failed]")):
			return doesNotCompile, "", nil
		default:
			return killed, " by " + failed(output, list[i].ImportPath), nil
		}
	}
	return survived, "", nil
}

// failed names the first test that failed, or the package where the output names none.
func failed(output []byte, importPath string) string {
	_, rest, found := strings.Cut(string(output), "--- FAIL: ")
	if !found {
		return importPath
	}
	name, _, _ := strings.Cut(rest, " ")
	return importPath + " " + name
}

// writeOverlay tells the go command to read the mutant's file instead of the tree's.
func writeOverlay(root, folder string, m *mutant) (string, error) {
	changed := filepath.Join(folder, m.name+filepath.Ext(m.path))
	if err := os.WriteFile(changed, []byte(m.text), 0o600); err != nil {
		return "", err
	}
	replace := map[string]map[string]string{"Replace": {filepath.Join(root, filepath.FromSlash(m.path)): changed}}
	text, err := json.Marshal(replace)
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, m.name+".json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// fail gives the output of the second run that fails in a row, or nil: a test with random inputs that fails now and then
// notices nothing. Tests that never end are not waited for again.
func fail(root, overlay string, p *goPackage) ([]byte, error) {
	var output []byte
	for range 2 {
		var err error
		var exit *exec.ExitError
		if output, err = runTests(root, overlay, p); err == nil {
			return nil, nil
		} else if !errors.As(err, &exit) {
			return nil, err
		}
		if bytes.Contains(output, []byte("panic: test timed out")) {
			return output, nil
		}
	}
	return output, nil
}

// runTests of a package, not the short way, in which properties do not reach all that their tests ask for. Vet is off: a
// mutant need not be good style.
func runTests(root, overlay string, p *goPackage) ([]byte, error) {
	arguments := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", timeout.String()}
	if overlay != "" {
		arguments = append(arguments, "-overlay", overlay)
	}
	arguments = append(arguments, p.ImportPath)
	if p.usesRapid() {
		arguments = append(arguments, "-rapid.nofailfile") // what a mutant fails on is no example for the tree
	}
	command := exec.Command("go", arguments...)
	command.Dir = root
	return command.CombinedOutput()
}
