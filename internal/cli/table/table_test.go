package table_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

func TestATableIsAlignedAndOnlyItsWidestColumnIsCut(t *testing.T) {
	columns := []table.Column{{Name: "NAME"}, {Name: "WHAT", Least: 10}, {Name: "WHY", Least: 5}}
	rows := []table.Row{
		{{Text: "a"}, {Text: strings.Repeat("long ", 30)}, {Text: "because", Style: terminal.Red}},
		{{Text: "grün"}, {Text: "short"}, {Text: "no"}},
	}
	var got strings.Builder
	if err := table.Write(&got, terminal.Paint{}, columns, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	if len(lines) != 3 || utf8.RuneCountInString(lines[1]) != table.Width {
		t.Fatalf("%q", lines)
	}
	at := strings.Index(lines[0], "WHY")
	long := strings.Repeat("long ", 30)[:at-len("a     ")-len("...  ")]
	if diff := cmp.Diff([]string{"a     " + long + "...  because", "grün  short" + strings.Repeat(" ", at-len("NAME  short")) + "no"},
		[]string{lines[1], lines[2]}); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Proves K-4.
func TestATableFitsWhateverItsCellsHold(t *testing.T) {
	columns := []table.Column{{Name: "NAMESPACE", Least: 20}, {Name: "GRANT", Least: 24}, {Name: "WHAT", Least: 24}, {Name: "WHY", Least: 12}}
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) table.Row {
			row := make(table.Row, len(columns))
			for i := range row {
				row[i].Text = rapid.StringMatching(`[a-zä ]{0,300}`).Draw(t, "cell")
			}
			return row
		}), 0, 5).Draw(t, "rows")
		var got strings.Builder
		if err := table.Write(&got, terminal.Paint{}, columns, rows); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(got.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > table.Width {
				t.Fatalf("a line has %d characters: %s", n, line)
			}
		}
	})
}
