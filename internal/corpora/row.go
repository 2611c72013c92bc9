package corpora

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
)

// Row is one measurement.
type Row struct {
	// Metric is the promise, Set the folder of the data.
	Metric string `json:"metric"`
	Set    string `json:"set"`
	// N entries were measured, Bad of them break the promise; IDs names those.
	N   int `json:"n"`
	Bad int `json:"bad"`
	// Target is the allowed share of bad entries, from 0 to 1; 1 means that the number is only reported.
	Target float64  `json:"target"`
	IDs    []string `json:"ids"`
}

// Missed tells whether more entries are bad than the target allows.
func (r *Row) Missed() bool { return float64(r.Bad) > r.Target*float64(r.N) }

// mark is MISSED when the target is, and ARGUED when it is met by all entries whose label nobody contests.
func (r *Row) mark() string {
	if !r.Missed() {
		return ""
	}
	contested := 0
	for _, id := range r.IDs {
		if reasonFor(id) != "" {
			contested++
		}
	}
	if rest := (Row{N: r.N - contested, Bad: r.Bad - contested, Target: r.Target}); rest.Missed() {
		return "MISSED"
	}
	return "ARGUED"
}

func (r *Row) count(id string, bad bool) {
	r.N++
	if bad {
		r.Bad++
		r.IDs = append(r.IDs, id)
	}
}

func newRow(metric, set string, target float64) *Row {
	return &Row{Metric: metric, Set: set, Target: target, IDs: []string{}}
}

// Print writes a table and below it the IDs of the bad entries of every row, with the reason of each that is argued.
func Print(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "METRIC\tSET\tN\tBAD\tTARGET\t")
	for i := range rows {
		r := &rows[i]
		target := fmt.Sprintf("<= %g %%", r.Target*100)
		if r.Target == 1 {
			target = "reported"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", r.Metric, r.Set, r.N, r.Bad, target, r.mark())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range rows {
		for _, id := range rows[i].IDs {
			reason := reasonFor(id)
			if reason != "" {
				reason = " (" + reason + ")"
			}
			if _, err := fmt.Fprintf(w, "%s, %s: %s%s\n", rows[i].Metric, rows[i].Set, id, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write writes one JSON line per row.
func Write(w io.Writer, rows []Row) error {
	encoder := json.NewEncoder(w)
	for i := range rows {
		if err := encoder.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// maxLine bounds one line of data.
const maxLine = 16 << 20

// read decodes every line of a file. A file that is not there has none; what cannot be decoded is an error that names
// file and line.
func read[T any](data fs.FS, file string) ([]T, error) {
	content, err := fs.ReadFile(data, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, maxLine)
	var lines []T
	for n := 1; scanner.Scan(); n++ {
		var line T
		decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		decoder.UseNumber()
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, n, err)
		}
		lines = append(lines, line)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return lines, nil
}
