package grants

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// maxLine bounds one line of a question before it is wrapped. The API server bounds what it stores at 512 characters, so
// this cuts only what had to be escaped.
const maxLine = 1024

// margin is how far the text of a section stands from the left.
const margin = 11

// page is text in named sections.
type page struct {
	paint terminal.Paint
	b     strings.Builder
	// most lines of a section, before they are wrapped.
	most int
}

// section writes lines that are safe to show under a name; nothing for none.
func (p *page) section(name string, lines ...string) { p.styled(terminal.Plain, name, lines...) }

func (p *page) styled(style terminal.Style, name string, lines ...string) {
	label := name
	for _, line := range lines {
		for _, piece := range wrap(line, table.Width-margin) {
			fmt.Fprintf(&p.b, "  %s%s%s\n", p.paint.Text(terminal.Bold, label), strings.Repeat(" ", max(1, margin-2-len(label))), p.paint.Text(style, piece))
			label = ""
		}
	}
}

// untrusted writes lines that somebody else wrote: escaped, and at most as many as the page shows of a section.
func (p *page) untrusted(name string, lines []string) {
	shown := make([]string, 0, min(len(lines), p.most)+1)
	for i, line := range lines {
		if i == p.most {
			shown = append(shown, fmt.Sprintf("... %d more lines; -o yaml shows all, and the digest covers all", len(lines)-p.most))
			break
		}
		shown = append(shown, screen.Line(line, maxLine))
	}
	p.section(name, shown...)
}

// title is what the page is about: the first line, which somebody else may have written.
func (p *page) title(before, text string) {
	const indent = "    "
	for i, piece := range wrap(before+screen.Line(text, maxLine), table.Width-len(indent)) {
		if i > 0 {
			p.b.WriteString(indent)
		}
		p.line("%s", p.paint.Text(terminal.Bold, piece))
	}
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// wrap cuts a line into pieces of at most width characters, behind a space where it has one. Nothing of it is lost.
func wrap(line string, width int) []string {
	var pieces []string
	for utf8.RuneCountInString(line) > width {
		piece := string([]rune(line)[:width])
		if space := strings.LastIndexByte(piece, ' '); space >= 0 {
			piece = piece[:space+1]
		}
		pieces = append(pieces, piece)
		line = line[len(piece):]
	}
	return append(pieces, line)
}

// quoted is what somebody said, so that its end is seen.
func quoted(s string) string { return `"` + screen.Line(s, maxLine) + `"` }
