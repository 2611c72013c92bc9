package cases

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"stepbeyond.dev/stepbeyond/internal/cli/prose"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/policytest"
	"stepbeyond.dev/stepbeyond/policy"
)

// Report is what became of all folders; with -o it is written as it is.
type Report struct {
	Folders []Folder `json:"folders"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	// Unreadable folders, or folders with a case that cannot be read.
	Unreadable int `json:"unreadable"`
}

// Folder is what became of one test.
type Folder struct {
	Folder string `json:"folder"`
	Name   string `json:"name,omitempty"`
	// Problems keep the whole folder from being run; there are no cases then.
	Problems       []string `json:"problems,omitempty"`
	Cases          []Case   `json:"cases,omitempty"`
	UntouchedRules []string `json:"untouchedRules,omitempty"`
	Milliseconds   int64    `json:"milliseconds"`
}

// Outcome of a case.
type Outcome string

// Outcomes.
const (
	Pass Outcome = "Pass"
	Fail Outcome = "Fail"
	// Unreadable: the operation of the case cannot be read, so nothing was decided.
	Unreadable Outcome = "Unreadable"
)

// Case is what became of one case.
type Case struct {
	Name    string   `json:"name"`
	Place   string   `json:"place"`
	Outcome Outcome  `json:"outcome"`
	Proves  []string `json:"proves,omitempty"`
	// Answers given: class, verdict and reason.
	Answers     []string     `json:"answers,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
	Because     []string     `json:"because,omitempty"`
	Problem     string       `json:"problem,omitempty"`
}

// Difference is one field of an answer that is not as wanted.
type Difference struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

func (f *Folder) addCase(r *policytest.Result) {
	c := Case{Name: r.Name, Place: place(f.Folder, r.Line), Outcome: Fail, Proves: r.Proves, Because: r.Because}
	for i := range r.Decisions {
		c.Answers = append(c.Answers, answer(&r.Decisions[i]))
	}
	for _, d := range r.Differences {
		c.Differences = append(c.Differences, Difference(d))
	}
	switch {
	case r.Err != nil:
		c.Outcome, c.Problem = Unreadable, r.Err.Error()
	case r.Passed():
		c.Outcome = Pass
	}
	f.Cases = append(f.Cases, c)
}

func answer(d *policy.Decision) string {
	return fmt.Sprintf("%s, %s (%s)", d.Class, d.Verdict, d.Reason)
}

func (f *Folder) count(outcome Outcome) int {
	n := 0
	for i := range f.Cases {
		if f.Cases[i].Outcome == outcome {
			n++
		}
	}
	return n
}

func (f *Folder) isUnreadable() bool { return len(f.Problems) > 0 || f.count(Unreadable) > 0 }

// shown is what people call the test.
func (f *Folder) shown() string { return cmp.Or(f.Name, filepath.Base(f.Folder)) }

func (r *Report) add(f Folder) {
	r.Folders = append(r.Folders, f)
	r.Passed += f.count(Pass)
	r.Failed += f.count(Fail)
	if f.isUnreadable() {
		r.Unreadable++
	}
}

func (r *Report) unreadable() []string {
	var folders []string
	for i := range r.Folders {
		if r.Folders[i].isUnreadable() {
			folders = append(folders, r.Folders[i].Folder)
		}
	}
	return folders
}

// Columns of a failed case.
const (
	indent = 6
	label  = 14
)

// text is the report for people: one line for a test that passes, and of the others every case that does not.
func (r *Report) text(paint terminal.Paint) string {
	b := &strings.Builder{}
	for i := range r.Folders {
		r.Folders[i].write(b, paint)
	}
	if len(r.Folders) > 1 {
		fmt.Fprintf(b, "%s: %d passed, %d failed", prose.Count(len(r.Folders), "test", "tests"), r.Passed, r.Failed)
		if r.Unreadable > 0 {
			fmt.Fprintf(b, ", %s cannot be read", prose.Count(r.Unreadable, "folder", "folders"))
		}
		b.WriteString(".\n")
	}
	return b.String()
}

func (f *Folder) write(b *strings.Builder, paint terminal.Paint) {
	if len(f.Problems) > 0 {
		fmt.Fprintf(b, "%s %s\n", paint.Text(terminal.Red, "ERROR"), f.Folder)
		for _, problem := range f.Problems {
			prose.Write(b, strings.Repeat(" ", indent), problem)
		}
		return
	}
	for i := range f.Cases {
		if c := &f.Cases[i]; c.Outcome != Pass {
			c.write(b, paint)
		}
	}
	failed, unreadable := f.count(Fail), f.count(Unreadable)
	if failed+unreadable == 0 {
		fmt.Fprintf(b, "%s  %s  %s, %d.%02d s", paint.Text(terminal.Green, "PASS"), f.shown(), prose.Count(len(f.Cases), "case", "cases"),
			f.Milliseconds/1000, f.Milliseconds%1000/10)
	} else {
		fmt.Fprintf(b, "%s: %d passed, %d failed", f.shown(), f.count(Pass), failed)
		if unreadable > 0 {
			fmt.Fprintf(b, ", %d cannot be read", unreadable)
		}
		b.WriteString(".")
	}
	b.WriteByte('\n')
	if len(f.UntouchedRules) > 0 {
		prose.Write(b, strings.Repeat(" ", indent), "Rules no case touched: "+strings.Join(f.UntouchedRules, ", "))
	}
}

func (c *Case) write(b *strings.Builder, paint terminal.Paint) {
	word := "FAIL "
	if c.Outcome == Unreadable {
		word = "ERROR"
	}
	name := prose.Visible(c.Name)
	if room := table.Width - indent - 1 - utf8.RuneCountInString(c.Place); utf8.RuneCountInString(name) < room {
		name += strings.Repeat(" ", room-utf8.RuneCountInString(name))
	}
	fmt.Fprintf(b, "%s %s %s\n", paint.Text(terminal.Red, word), name, c.Place)
	row := func(name string, lines ...string) {
		for _, line := range lines {
			prose.Write(b, strings.Repeat(" ", indent)+fmt.Sprintf("%-*s", label, name), line)
			name = ""
		}
	}
	if c.Outcome == Unreadable {
		row("problem", c.Problem)
		return
	}
	for _, d := range c.Differences {
		if both := "want " + d.Want + ", got " + d.Got; indent+label+utf8.RuneCountInString(both) <= table.Width {
			row(d.Field, both)
		} else {
			row(d.Field, "want "+d.Want, "got  "+d.Got)
		}
	}
	row("answer", c.Answers...)
	row("because", c.Because...)
}
