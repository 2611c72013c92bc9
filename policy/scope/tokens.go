package scope

import (
	"strings"
	"unicode"
)

// gap is what stands between a token and the one before it. Larger gaps separate more.
type gap uint8

const (
	gapNone gap = iota
	gapComma
	gapClause
	gapSentence
)

// opaque is the word of a token that stands for hidden text. It is no word of any lexicon.
const opaque int32 = -1

// token is one word, or one stretch of hidden text. Words are kept as numbers of the detector's vocabulary; 0 is a word
// that no lexicon has.
type token struct {
	exact, plain int32
	// tail holds the last three bytes of the plain key.
	tail       [3]byte
	start, end int
	sentence   int
	gap        gap
	// linked: a hyphen joins it to the token before; joined: to either neighbour.
	linked, joined bool
	// bracketed: inside parentheses.
	bracketed bool
	mixed     bool
}

// ending is the last bytes of the plain key, at most three.
func (k token) ending() string { return strings.TrimRight(string(k.tail[:]), "\x00") }

// tokenizer walks the letters once.
type tokenizer struct {
	text       []letter
	hidden     []cover
	vocabulary map[string]int32
	folder     folder

	tokens    []token
	questions []bool
	gap       gap
	// lineEnded: the end of a line has ended the sentence, and no word came yet.
	lineEnded bool
	brackets  int
}

// tokenize splits the text into words of letters, marks and numbers, and says of every sentence whether it is a question.
func tokenize(text []letter, hidden []cover, vocabulary map[string]int32) ([]token, []bool) {
	t := &tokenizer{text: text, hidden: hidden, vocabulary: vocabulary, folder: newFolder(), questions: []bool{false}}
	for i := 0; i < len(text); {
		switch {
		case hidden[i] == hiddenBlock:
			t.lineEnded = true
			t.widen(gapSentence)
			i++
		case hidden[i] == hiddenInline:
			i = t.hiddenRun(i)
		case isWord(text[i].r):
			i = t.word(i)
		default:
			t.separator(i)
			i++
		}
	}
	return t.tokens, t.questions
}

func (t *tokenizer) add(k token, from, to int) {
	if t.gap == gapSentence && len(t.tokens) > 0 {
		t.questions = append(t.questions, false)
	}
	k.start, k.end = t.text[from].start, t.text[to-1].end
	k.sentence, k.gap, k.bracketed = len(t.questions)-1, t.gap, t.brackets > 0
	k.linked = from > 1 && isHyphen(t.text[from-1].r) && t.wordOrHidden(from-2)
	k.joined = k.linked || to+1 < len(t.text) && isHyphen(t.text[to].r) && t.wordOrHidden(to+1)
	t.gap, t.lineEnded = gapNone, false
	t.tokens = append(t.tokens, k)
}

func (t *tokenizer) wordOrHidden(i int) bool { return isWord(t.text[i].r) || t.hidden[i] != shown }

func (t *tokenizer) hiddenRun(from int) int {
	to := from
	for to < len(t.text) && t.hidden[to] == hiddenInline {
		to++
	}
	t.add(token{exact: opaque, plain: opaque}, from, to)
	return to
}

// word reads letters, marks and numbers. An apostrophe between letters belongs to the word and is left out of its key.
func (t *tokenizer) word(from int) int {
	var b strings.Builder
	to := from
	for to < len(t.text) && t.hidden[to] == shown {
		r := t.text[to].r
		switch {
		case isWord(r) || unicode.Is(unicode.M, r):
			b.WriteRune(r)
		case isApostrophe(r) && to+1 < len(t.text) && t.hidden[to+1] == shown && unicode.IsLetter(t.text[to+1].r):
		default:
			return t.addWord(b.String(), from, to)
		}
		to++
	}
	return t.addWord(b.String(), from, to)
}

func (t *tokenizer) addWord(word string, from, to int) int {
	exact, plain := t.folder.keys(word)
	k := token{exact: t.vocabulary[exact], plain: t.vocabulary[plain], mixed: mixedScript(word)}
	copy(k.tail[:], plain[max(0, len(plain)-len(k.tail)):])
	t.add(k, from, to)
	return to
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' }

func isHyphen(r rune) bool { return r == '-' || r == '\u2010' }

func (t *tokenizer) separator(i int) {
	switch r := t.text[i].r; r {
	case '.', '!', ';', '。':
		t.widen(gapSentence)
	case '?':
		// A mark after a mark belongs to the same sentence, one on a line of its own to none.
		if !t.lineEnded && len(t.tokens) > 0 {
			t.questions[len(t.questions)-1] = true
		}
		t.widen(gapSentence)
	case ',', '、':
		t.widen(gapComma)
	case ':', '—', '–', '[', ']', '|':
		t.widen(gapClause)
	case '(':
		t.brackets++
		t.widen(gapClause)
	case ')':
		t.brackets = max(0, t.brackets-1)
		t.widen(gapClause)
	case '-', '\u2010':
		if !wordAt(t.text, i-1) || !wordAt(t.text, i+1) {
			t.widen(gapClause)
		}
	default:
		if isNewline(r) {
			t.newline(i)
		}
	}
}

func (t *tokenizer) widen(g gap) { t.gap = max(t.gap, g) }

// newline ends a sentence where the next line is blank, an item of a list or begins with a capital or a number; any
// other is a wrapped line.
func (t *tokenizer) newline(i int) {
	for i++; i < len(t.text); i++ {
		r := t.text[i].r
		switch {
		case isNewline(r):
			t.brackets, t.lineEnded = 0, true
			t.widen(gapSentence)
			return
		case unicode.IsSpace(r):
			continue
		case unicode.IsUpper(r) || unicode.IsNumber(r) || strings.ContainsRune("-*+•–—#", r):
			t.lineEnded = true
			t.widen(gapSentence)
		}
		return
	}
}
