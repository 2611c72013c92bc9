package scope

// reader reads the tokens of one text with one lexicon.
type reader struct {
	lexicon   *compiled
	tokens    []token
	questions []bool
	// roles of the tokens in this lexicon.
	roles []role
}

// found is the longest match of an index that begins at a token. Length 0 is none.
type found struct {
	length  int
	pattern pattern
}

// read goes through the text once. The longest match at a token decides; of equal ones the phrase comes before the idiom
// and the idiom before the broadening, so that a doubt tightens. What an idiom or a valid broadening covers is not
// judged again, except a phrase that reaches beyond it.
func (r reader) read() []Finding {
	var findings []Finding
	// The tokens before these are covered by a phrase, and by an idiom or a broadening.
	phraseEnd, coverEnd := 0, 0
	for at := range r.tokens {
		phrase := r.longest(r.lexicon.phrases, at, gapComma)
		idiom := r.longest(r.lexicon.idioms, at, gapNone)
		broaden := r.longest(r.lexicon.broadening, at, gapComma)
		switch {
		case at < phraseEnd:
		case broaden.length > max(phrase.length, idiom.length) && at+broaden.length > coverEnd:
			kind := r.broadening(at)
			findings = append(findings, r.finding(kind, at, broaden))
			if kind == KindBroaden {
				coverEnd = max(coverEnd, at+broaden.length)
			} else if phrase.length > 0 {
				findings = append(findings, r.finding(r.phrase(at), at, phrase))
				phraseEnd = at + phrase.length
			}
		case idiom.length > phrase.length:
			findings = append(findings, r.finding(KindIdiom, at, idiom))
			coverEnd = max(coverEnd, at+idiom.length)
		case phrase.length > 0 && at+phrase.length > coverEnd:
			findings = append(findings, r.finding(r.phrase(at), at, phrase))
			phraseEnd = at + phrase.length
		case at >= coverEnd:
			if kind, word := r.limiter(at); kind != "" {
				findings = append(findings, Finding{Kind: kind, Phrase: word, Start: r.tokens[at].start, End: r.tokens[at].end, Lexicon: r.lexicon.version})
			}
		}
	}
	return findings
}

func (r reader) longest(in index, at int, across gap) found {
	var best found
	for _, patterns := range [][]pattern{in.plain[r.tokens[at].plain], in.exact[r.tokens[at].exact]} {
		for _, p := range patterns {
			if length := p.match(r.tokens, at, across); length > best.length && !r.isName(at, length) {
				best = found{length, p}
			}
		}
	}
	return best
}

// isName: words that only hyphens join are the name of something ("nothing-else"), not a phrase.
func (r reader) isName(at, length int) bool {
	for _, k := range r.tokens[at+1 : at+length] {
		if !k.linked {
			return false
		}
	}
	return r.tokens[at].joined
}

func (r reader) finding(kind Kind, at int, f found) Finding {
	matched := r.tokens[at : at+f.length]
	return Finding{
		Kind: kind, Phrase: f.pattern.spell(matched), Lexicon: r.lexicon.version,
		Start: matched[0].start, End: matched[f.length-1].end,
	}
}

// phrase judges a phrase that limits by itself: it does, except in a question that asks for no work.
func (r reader) phrase(at int) Kind {
	if r.asks(at) {
		return KindContent
	}
	return KindLimit
}

// broadening judges an explicit broadening: asked, denied, doubted or tied to a condition it is not unambiguous (S-3).
func (r reader) broadening(at int) Kind {
	from, to := r.sentence(at)
	if r.questions[r.tokens[at].sentence] {
		return KindContent
	}
	for i := from; i < to; i++ {
		if r.is(i, roleCondition|roleDoubt) || i < at && r.is(i, roleNegation) {
			return KindContent
		}
	}
	return KindBroaden
}

// limiter judges a single limiting word. The kind is empty for any other word.
func (r reader) limiter(at int) (Kind, string) {
	k := r.tokens[at]
	word, isLimiter := r.lexicon.limiters.spelling(k)
	filler, isFiller := r.lexicon.fillers.spelling(k)
	switch {
	case !isLimiter && !isFiller:
		return "", ""
	case k.joined:
		return KindIdiom, word + filler
	case r.asks(at), r.isNote(at), r.isConditional(at):
		return KindContent, word + filler
	case isLimiter && r.limits(at):
		return KindLimit, word
	case !isLimiter && r.fillerLimits(at):
		return KindLimit, filler
	}
	return KindContent, word + filler
}

// asks: the sentence is a question that does not ask the agent to do something.
func (r reader) asks(at int) bool {
	if !r.questions[r.tokens[at].sentence] {
		return false
	}
	from, to := r.sentence(at)
	if r.is(from, roleQuestion) {
		return true
	}
	for i := from; i < to; i++ {
		if r.is(i, roleAddress) {
			return false
		}
	}
	return true
}

// isNote: in parentheses a limiter explains what stands before it ("(debuggable packages only)"). "(and only web)" goes on
// with the instruction.
func (r reader) isNote(at int) bool {
	goesOn := at > 0 && r.tokens[at-1].bracketed && r.is(at-1, roleLead)
	return r.tokens[at].bracketed && !goesOn
}

// window bounds how far a limiter's context reaches, in words, so that a text without full stops costs no more.
const window = 32

// sentence is the part of the token's sentence within the window.
func (r reader) sentence(at int) (from, to int) {
	from, to = at, at+1
	for from > 0 && at-from < window && r.tokens[from-1].sentence == r.tokens[at].sentence {
		from--
	}
	for to < len(r.tokens) && to-at < window && r.tokens[to].sentence == r.tokens[at].sentence {
		to++
	}
	return from, to
}
