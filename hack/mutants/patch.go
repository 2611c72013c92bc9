package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// patch is one file of hack/mutants/patches: a first line that says in a sentence what the patch breaks, then a unified
// diff of one file with one hunk.
type patch struct {
	name   string
	breaks string
	path   string // slash-separated, below the repository's top folder
	// before and after are the lines of the hunk, each with its newline.
	before, after string
}

// readPatches reads every *.patch of the folder, by name. The error has everything that is wrong, with the files' names.
func readPatches(folder fs.FS) ([]patch, error) {
	names, err := fs.Glob(folder, "*.patch")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var patches []patch
	var problems []error
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		p, err := parse(string(text))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		p.name = strings.TrimSuffix(name, ".patch")
		patches = append(patches, p)
	}
	return patches, errors.Join(problems...)
}

// parse reads one patch. The line numbers of the hunk are for other tools: the lines themselves say where it belongs, so
// that the patch survives edits elsewhere in the file.
func parse(text string) (patch, error) {
	var p patch
	lines := strings.SplitAfter(text, "\n")
	p.breaks = strings.TrimSpace(lines[0])
	if p.breaks == "" || strings.HasPrefix(p.breaks, "---") || !strings.HasSuffix(p.breaks, ".") {
		return patch{}, errors.New("line 1: must say in a sentence what the patch breaks")
	}
	if len(lines) < 4 {
		return patch{}, errors.New("has no diff")
	}
	from, isFrom := strings.CutPrefix(strings.TrimSpace(lines[1]), "--- a/")
	to, isTo := strings.CutPrefix(strings.TrimSpace(lines[2]), "+++ b/")
	if !isFrom || !isTo || from != to || from == "" {
		return patch{}, errors.New("lines 2 and 3: must be --- a/PATH and +++ b/PATH of one file")
	}
	p.path = from
	if !strings.HasPrefix(lines[3], "@@ ") {
		return patch{}, errors.New("line 4: must begin the hunk with @@")
	}
	for i, line := range lines[4:] {
		if line == "" {
			continue // behind the last newline
		}
		switch line[0] {
		case ' ':
			p.before, p.after = p.before+line[1:], p.after+line[1:]
		case '-':
			p.before += line[1:]
		case '+':
			p.after += line[1:]
		default:
			return patch{}, fmt.Errorf("line %d: a line of the one hunk begins with a space, - or +", i+5)
		}
	}
	if p.before == "" || p.before == p.after {
		return patch{}, errors.New("changes nothing")
	}
	return p, nil
}

// apply gives the file with the patch. The lines of the hunk must stand in it exactly once.
func (p *patch) apply(file string) (string, error) {
	const anchor = "\n"
	text := anchor + file
	switch n := strings.Count(text, anchor+p.before); n {
	case 0:
		return "", fmt.Errorf("%s: does not apply: %s has no such lines", p.name, p.path)
	case 1:
		return strings.TrimPrefix(strings.Replace(text, anchor+p.before, anchor+p.after, 1), anchor), nil
	default:
		return "", fmt.Errorf("%s: does not apply: %s has its lines %d times, so it needs more context", p.name, p.path, n)
	}
}

// mutant is a patch with the file that it makes.
type mutant struct {
	patch
	text string
}

// mutate applies every patch, each alone. The error names all that do not apply.
func mutate(root fs.FS, patches []patch) ([]mutant, error) {
	var mutants []mutant
	var problems []error
	for i := range patches {
		p := &patches[i]
		file, err := fs.ReadFile(root, p.path)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: does not apply: %w", p.name, err))
			continue
		}
		text, err := p.apply(string(file))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		mutants = append(mutants, mutant{patch: *p, text: text})
	}
	return mutants, errors.Join(problems...)
}
