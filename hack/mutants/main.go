// Mutants applies each patch of hack/mutants/patches to the engine, alone, and runs the tests that must notice it.
//
// A patch is killed when a test fails, and survives when none does. The program exits with 1 unless every patch applies,
// compiles and is killed. The tree is never changed: the go command reads the changed file through an overlay.
//
// Usage: mutants [-check] [NAME...], where NAME begins the names of the patches to try (default: all), and -check only
// tells whether every patch applies.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "only tell whether every patch applies")
	flag.Parse()
	if err := run(*check, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run works below the repository's top folder, which is the working directory.
func run(check bool, prefixes []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	patches, err := readPatches(os.DirFS(filepath.Join(root, "hack", "mutants", "patches")))
	if err != nil {
		return err
	}
	if patches = chosen(patches, prefixes); len(patches) == 0 {
		return fmt.Errorf("no patch begins with %s", strings.Join(prefixes, " or "))
	}
	mutants, err := mutate(os.DirFS(root), patches)
	if err != nil || check {
		return err
	}
	return try(root, mutants)
}

func chosen(patches []patch, prefixes []string) []patch {
	if len(prefixes) == 0 {
		return patches
	}
	var some []patch
	for _, p := range patches {
		for _, prefix := range prefixes {
			if strings.HasPrefix(p.name, prefix) {
				some = append(some, p)
				break
			}
		}
	}
	return some
}
