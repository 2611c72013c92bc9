package policytest

import (
	"errors"
	"fmt"
	"io/fs"

	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// File is the name of the file with the cases.
const File = "cases.yaml"

// Suite is a policy test that was read and compiled.
type Suite struct {
	folder   fs.FS
	test     Test
	policies *policies
	snapshot *policystore.Snapshot
	sessions map[string]*session
	// lines of the cases in the file.
	lines []int
}

// Load reads a folder and compiles its policies. It errs with everything that is wrong in the files; each error names
// file, document and field.
func Load(folder fs.FS) (*Suite, error) {
	s := &Suite{folder: folder, sessions: map[string]*session{}}
	if err := one(folder, File, &s.test); err != nil {
		return nil, err
	}
	if err := errors.Join(s.check()...); err != nil {
		return nil, err
	}
	files := s.test.Spec.Policies
	if len(files) == 0 {
		files = []string{"policy.yaml"}
	}
	read, err := readPolicies(folder, files)
	if err != nil {
		return nil, err
	}
	s.policies, s.lines = read, linesOf(folder)
	for i := range s.test.Spec.Sessions {
		if err := read.label(&s.test.Spec.Sessions[i]); err != nil {
			return nil, fmt.Errorf("%s: spec.sessions[%d].%w", File, i, err)
		}
	}
	if s.snapshot, err = read.snapshot(s.test.Spec.Now); err != nil {
		return nil, err
	}
	if want := s.test.Spec.BaselineVersion; want != "" && want != s.snapshot.BaselineVersion {
		return nil, fmt.Errorf("%s: spec.baselineVersion: is %s, and the policies put %s in force", File, want, s.snapshot.BaselineVersion)
	}
	var problems []error
	for i := range s.test.Spec.Sessions {
		object := &s.test.Spec.Sessions[i]
		made, err := newSession(object, s.snapshot, s.test.Spec.Now.Time)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: spec.sessions[%d].%w", File, i, err))
		}
		s.sessions[object.Name] = made
	}
	return s, errors.Join(problems...)
}

// check names what is wrong in the file beyond its types.
func (s *Suite) check() []error {
	var problems []error
	wrong := func(format string, values ...any) {
		problems = append(problems, fmt.Errorf(File+": "+format, values...))
	}
	if s.test.APIVersion != APIVersion || s.test.Kind != Kind {
		wrong("kind: is %s %s, want %s %s", s.test.APIVersion, s.test.Kind, APIVersion, Kind)
	}
	if s.test.Spec.Now.IsZero() {
		wrong("spec.now: is required: a test has one clock")
	}
	if len(s.test.Spec.Cases) == 0 {
		wrong("spec.cases: needs at least one case")
	}
	sessions, cases := map[string]bool{}, map[string]bool{}
	for i := range s.test.Spec.Sessions {
		name := s.test.Spec.Sessions[i].Name
		if name == "" || sessions[name] {
			wrong("spec.sessions[%d].name: %q must be unique and not empty", i, name)
		}
		sessions[name] = true
	}
	for i := range s.test.Spec.Cases {
		c := &s.test.Spec.Cases[i]
		if c.Name == "" || cases[c.Name] {
			wrong("spec.cases[%d].name: %q must be unique and not empty", i, c.Name)
		}
		cases[c.Name] = true
		if !sessions[c.Session] {
			wrong("spec.cases[%d].session: there is no session %q", i, c.Session)
		}
		for field, want := range map[string]*Want{"want": &c.Want, "wantAgain": c.WantAgain} {
			if want == nil {
				continue
			}
			for _, problem := range want.check() {
				wrong("spec.cases[%d].%s.%s", i, field, problem)
			}
		}
	}
	return problems
}

// Result is what became of one case.
type Result struct {
	Name string
	// Line of the case in the file, from 1; 0 when the file does not tell.
	Line int
	// Proves lists the requirements that the case proves when it passes.
	Proves []string
	// Decisions are the answers given: the one to the operation and, where the case wants it, the one to it sent again.
	// Empty when the operation cannot be read.
	Decisions []policy.Decision
	// Differences between the wanted and the given answers. Empty, without Err: the case passes.
	Differences []Difference
	// Because says what was decided about and why the answers that differ are as they are, one reason per line.
	Because []string
	// Err tells that the operation cannot be read; it names the field below the case.
	Err error
}

// Passed tells whether every answer is as wanted.
func (r *Result) Passed() bool { return r.Err == nil && len(r.Differences) == 0 }

// Difference is one field of an answer that is not as wanted.
type Difference struct {
	// Field of want, as in "class"; of wantAgain behind "again: ".
	Field string
	// Want and Got in words.
	Want, Got string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: want %s, got %s", d.Field, d.Want, d.Got)
}

// Name of the test, as its metadata says; may be empty.
func (s *Suite) Name() string { return s.test.Metadata.Name }

// Run decides every case, in the order of the file. It errs when an operation cannot be read; the error names the case
// and the field.
func (s *Suite) Run() ([]Result, error) {
	results := make([]Result, 0, len(s.test.Spec.Cases))
	var problems []error
	for i := range s.test.Spec.Cases {
		c := &s.test.Spec.Cases[i]
		result := Result{Name: c.Name, Proves: c.Proves}
		if i < len(s.lines) {
			result.Line = s.lines[i]
		}
		if err := s.run(c, &result); err != nil {
			result.Err = err
			problems = append(problems, fmt.Errorf("%s: spec.cases[%d] (%s): %w", File, i, c.Name, err))
		}
		results = append(results, result)
	}
	return results, errors.Join(problems...)
}

func (s *Suite) run(c *Case, result *Result) error {
	by := s.sessions[c.Session]
	asked, err := prepare(s.folder, &c.Operation, by)
	if err != nil {
		return err
	}
	// What has no exact form is decided without a grant, as at admission.
	if err := asked.bind(&by.view); err != nil && !errors.Is(err, kube.ErrUnnamed) {
		return err
	}
	var grants []*grant
	for i := range c.Grants {
		g, err := s.newGrant(&c.Grants[i], c, i)
		if err != nil {
			return fmt.Errorf("grants[%d].%w", i, err)
		}
		grants = append(grants, g)
	}
	view := by.view
	chosen := choose(grants, &asked.operation)
	if chosen != nil {
		view.Grant = &chosen.Grant
	}
	s.decide(&c.Want, "", &view, asked, chosen, result)
	if c.WantAgain != nil {
		s.decide(c.WantAgain, "again: ", &view, asked, nil, result)
	}
	return nil
}

// decide compares one answer and gives it its consequence.
func (s *Suite) decide(want *Want, prefix string, view *policy.SessionView, asked *prepared, chosen *grant, result *Result) {
	now := s.test.Spec.Now.Time
	decision := s.snapshot.Engine.Decide(asked.operation, *view, now)
	shown := decision
	if decision.Verdict == policy.VerdictPending || decision.Grant != nil {
		completeGrant(&shown, chosen, asked)
	}
	result.Decisions = append(result.Decisions, shown)
	differences := want.compare(&shown, &asked.operation)
	for _, difference := range differences {
		difference.Field = prefix + difference.Field
		result.Differences = append(result.Differences, difference)
	}
	if len(differences) > 0 {
		for _, reason := range append(explain(&shown, &asked.operation), s.absences(want, &shown)...) {
			result.Because = append(result.Because, prefix+reason)
		}
	}
	settle(&decision, view, &asked.operation, now)
}
