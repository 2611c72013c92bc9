package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// row is what came of one step; also one line of wanted.tsv. An empty column is written as -.
type row struct {
	Step, Who, What string
	Class           string // of the recorded decision, or FORBIDDEN for a refusal of the floor; empty: nobody classified it
	Verdict         string // Allow, Pending, Held, Deny, Unavailable (nobody could decide), or Failed
	Reason          string // status.reason of the API server's answer; empty when it is a success
	By              string // the webhook or the policy that refused, or RBAC
	Because         string // the parenthesis of the message, the disclosure, or what the step's says found
	Effect          string // what the step's effect printed
}

var header = []string{"step", "who", "what", "class", "verdict", "reason", "by", "because", "effect"}

func (r row) columns() []string {
	columns := []string{r.Step, r.Who, r.What, r.Class, r.Verdict, r.Reason, r.By, r.Because, r.Effect}
	for i, c := range columns {
		if c == "" {
			columns[i] = "-"
		}
	}
	return columns
}

func (r row) tsv() string { return strings.Join(r.columns(), "\t") }

// differences names every column that is not as wanted, with both values.
func (r row) differences(want row) []string {
	var out []string
	got, wanted := r.columns(), want.columns()
	for i, name := range header {
		if got[i] != wanted[i] {
			out = append(out, fmt.Sprintf("%s: wanted %s, got %s", name, wanted[i], got[i]))
		}
	}
	return out
}

// readWanted reads the table of wanted rows.
func readWanted(path string) ([]row, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("wanted rows: %w", err)
	}
	var rows []row
	for n, line := range slices.Collect(bytes.Lines(text)) {
		columns := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
		if n == 0 {
			if !slices.Equal(columns, header) {
				return nil, fmt.Errorf("%s: line 1: want the columns %s", path, strings.Join(header, ", "))
			}
			continue
		}
		r, err := parseRow(columns)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func parseRow(columns []string) (row, error) {
	if len(columns) != len(header) {
		return row{}, fmt.Errorf("%d columns, want %d", len(columns), len(header))
	}
	columns = slices.Clone(columns)
	for i, c := range columns {
		switch c {
		case "":
			return row{}, errors.New("an empty column is written as -")
		case "-":
			columns[i] = ""
		}
	}
	c := columns
	return row{c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8]}, nil
}

// match pairs the steps that are rows with the wanted rows of the same name, and refuses a row or step without the other.
func match(steps []step, rows []row) (map[string]row, error) {
	wanted := map[string]row{}
	for _, r := range rows {
		if _, twice := wanted[r.Step]; twice {
			return nil, fmt.Errorf("wanted row %s is there twice", r.Step)
		}
		wanted[r.Step] = r
	}
	count := 0
	for _, s := range steps {
		if s.Do != "" {
			continue
		}
		count++
		if _, ok := wanted[s.Step]; !ok {
			return nil, fmt.Errorf("step %s has no wanted row", s.Step)
		}
	}
	if count != len(wanted) {
		return nil, fmt.Errorf("%d steps and %d wanted rows", count, len(wanted))
	}
	return wanted, nil
}
