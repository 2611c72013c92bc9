// Package table writes tables that fit a width.
package table

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

// Width is how many columns of a terminal every table fits, but for cells that are never cut.
const Width = 120

// gap between two columns.
const gap = 2

// cut marks a cell that lacks its end.
const cut = "..."

// Column of a table.
type Column struct {
	Name string
	// Least is the width down to which cells may be cut. 0: they are never cut.
	Least int
	// Room is the width that is kept for rows that come later. 0: none.
	Room int
}

// Cell is one line of text that is safe to show.
type Cell struct {
	Text  string
	Style terminal.Style
}

// Row is a cell per column.
type Row []Cell

// Table has columns whose widths are fixed when it is made, so that rows that come later stand below the earlier ones.
type Table struct {
	paint   terminal.Paint
	columns []Column
	widths  []int
}

// New makes a table for these rows. While it is wider than Width, the widest column that may be cut is.
func New(paint terminal.Paint, columns []Column, rows []Row) *Table {
	t := &Table{paint: paint, columns: columns, widths: make([]int, len(columns))}
	for i, column := range columns {
		t.widths[i] = max(utf8.RuneCountInString(column.Name), column.Room)
		for _, row := range rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	t.fit()
	return t
}

func (t *Table) fit() {
	total := gap * (len(t.widths) - 1)
	for _, width := range t.widths {
		total += width
	}
	for ; total > Width; total-- {
		widest := -1
		for i, column := range t.columns {
			least := max(column.Least, utf8.RuneCountInString(column.Name))
			if column.Least > 0 && t.widths[i] > least && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// Header writes the names of the columns.
func (t *Table) Header(w io.Writer) error {
	names := make(Row, len(t.columns))
	for i, column := range t.columns {
		names[i] = Cell{Text: column.Name, Style: terminal.Bold}
	}
	return t.Row(w, names)
}

// Row writes one row.
func (t *Table) Row(w io.Writer, row Row) error {
	var line strings.Builder
	for i, cell := range row {
		text, width := cell.Text, utf8.RuneCountInString(cell.Text)
		if width > t.widths[i] && t.columns[i].Least > 0 {
			text, width = string([]rune(text)[:max(0, t.widths[i]-len(cut))])+cut, t.widths[i]
		}
		line.WriteString(t.paint.Text(cell.Style, text))
		if i < len(row)-1 {
			line.WriteString(strings.Repeat(" ", max(0, t.widths[i]-width)+gap))
		}
	}
	if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
		return fmt.Errorf("write a table: %w", err)
	}
	return nil
}

// Write writes a whole table.
func Write(w io.Writer, paint terminal.Paint, columns []Column, rows []Row) error {
	t := New(paint, columns, rows)
	if err := t.Header(w); err != nil {
		return err
	}
	for _, row := range rows {
		if err := t.Row(w, row); err != nil {
			return err
		}
	}
	return nil
}
