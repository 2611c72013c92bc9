package scope

import (
	"strings"
	"unicode"
)

// span is a half-open range of letters.
type span struct{ from, to int }

// cover says what hides a letter.
type cover uint8

const (
	shown cover = iota
	// hiddenInline stands for something in its sentence; hiddenBlock stands between sentences.
	hiddenInline
	hiddenBlock
)

// hide marks the letters that are not the user's own words: fenced code, block quotes, code spans, quoted text and
// identifiers. Only a fence reaches across a blank line, and nothing reaches backwards across one, so a paragraph that
// is added later never hides an earlier one (S-4).
func hide(text []letter) []cover {
	hidden := make([]cover, len(text))
	for _, paragraph := range hideBlocks(text, hidden) {
		hideCodeSpans(text, hidden, paragraph)
		hideQuotes(text, hidden, paragraph)
	}
	hideIdentifiers(text, hidden)
	return hidden
}

func mark(hidden []cover, s span, as cover) {
	for i := s.from; i < s.to; i++ {
		hidden[i] = as
	}
}

func isNewline(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// hideBlocks hides fences and block quotes, and returns the paragraphs between them. A fence that is never closed
// reaches to the end, as in CommonMark.
func hideBlocks(text []letter, hidden []cover) []span {
	var paragraphs []span
	var fence fenceLine
	open := span{from: -1}
	end := func(at int) {
		if open.from >= 0 {
			paragraphs = append(paragraphs, span{open.from, at})
		}
		open.from = -1
	}
	for from := 0; from < len(text); {
		to := from
		for to < len(text) && !isNewline(text[to].r) {
			to++
		}
		line := text[from:to]
		opened := readFence(line)
		switch {
		case fence.length > 0:
			mark(hidden, span{from, to}, hiddenBlock)
			if opened.rune == fence.rune && opened.length >= fence.length && opened.bare {
				fence = fenceLine{}
			}
		case opened.length > 0:
			end(from)
			mark(hidden, span{from, to}, hiddenBlock)
			fence = opened
		case isBlockQuote(line):
			end(from)
			mark(hidden, span{from, to}, hiddenBlock)
		case isBlank(line):
			end(from)
		case open.from < 0:
			open.from = from
		}
		from = to + 1
	}
	end(len(text))
	return paragraphs
}

// fenceLine is a line that can open or close fenced code. Length 0 is any other line.
type fenceLine struct {
	rune   rune
	length int
	// bare: nothing follows, so that it can close.
	bare bool
}

func readFence(line []letter) fenceLine {
	at := indent(line)
	if at >= len(line) || (line[at].r != '`' && line[at].r != '~') {
		return fenceLine{}
	}
	f := fenceLine{rune: line[at].r}
	for at < len(line) && line[at].r == f.rune {
		at, f.length = at+1, f.length+1
	}
	if f.length < 3 {
		return fenceLine{}
	}
	f.bare = isBlank(line[at:])
	for ; at < len(line); at++ {
		if f.rune == '`' && line[at].r == '`' {
			return fenceLine{}
		}
	}
	return f
}

func isBlockQuote(line []letter) bool {
	at := indent(line)
	return at < len(line) && line[at].r == '>'
}

// indent skips the spaces before a block. Deeper ones are skipped too: a fence inside a list item is indented.
func indent(line []letter) int {
	at := 0
	for at < len(line) && unicode.IsSpace(line[at].r) {
		at++
	}
	return at
}

func isBlank(line []letter) bool { return indent(line) == len(line) }

// hideCodeSpans pairs backtick runs of equal length. The nearest partner of every run is found in one backward pass,
// so that runs without one cost nothing.
func hideCodeSpans(text []letter, hidden []cover, in span) {
	var runs []span
	for i := in.from; i < in.to; i++ {
		if text[i].r != '`' {
			continue
		}
		run := span{from: i}
		for i < in.to && text[i].r == '`' {
			i++
		}
		run.to = i
		runs = append(runs, run)
	}
	partner := make([]int, len(runs))
	latest := map[int]int{}
	for i := len(runs) - 1; i >= 0; i-- {
		length := runs[i].to - runs[i].from
		if next, ok := latest[length]; ok {
			partner[i] = next
		}
		latest[length] = i
	}
	for i := 0; i < len(runs); i++ {
		if partner[i] > i {
			mark(hidden, span{runs[i].from, runs[partner[i]].to}, hiddenInline)
			i = partner[i]
		}
	}
}

// quotation is a pair of quotation marks. Where the closing mark is also the apostrophe it closes at the end of a word only.
type quotation struct {
	open       rune
	closing    string
	apostrophe bool
}

var quotations = []quotation{
	{'"', `"`, false}, {'\'', `'`, true}, {'“', "”", false}, {'„', "”“", false}, {'‘', "’", true}, {'‚', "‘’", true},
	{'«', "»", false}, {'‹', "›", false}, {'「', "」", false}, {'『', "』", false},
}

// hideQuotes hides quoted text. A mark without a partner in the paragraph hides nothing.
func hideQuotes(text []letter, hidden []cover, in span) {
	closings := make([][]int, len(quotations))
	for i := in.from; i < in.to; i++ {
		for q, pair := range quotations {
			if hidden[i] == shown && strings.ContainsRune(pair.closing, text[i].r) && (!pair.apostrophe || !wordAt(text, i+1)) {
				closings[q] = append(closings[q], i)
			}
		}
	}
	for i := in.from; i < in.to; i++ {
		for q, pair := range quotations {
			if hidden[i] != shown || text[i].r != pair.open || wordAt(text, i-1) || i+1 >= in.to || unicode.IsSpace(text[i+1].r) {
				continue
			}
			for len(closings[q]) > 0 && closings[q][0] <= i {
				closings[q] = closings[q][1:]
			}
			if len(closings[q]) > 0 {
				mark(hidden, span{i, closings[q][0] + 1}, hiddenInline)
			}
		}
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func wordAt(text []letter, i int) bool { return i >= 0 && i < len(text) && isWord(text[i].r) }
