package breaker

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Normalisation removes what differs between two calls though nothing happened. It errs on the side of a difference:
// what is missed costs a signal, what is removed in excess would make one up. So a field is removed only in a form that
// cannot be a value that somebody set:
//
//	form                                                             inputs  results  placeholder
//	Kubernetes metadata: uid, resourceVersion, creationTimestamp
//	  (with their name)                                              yes     yes      <volatile>
//	managedFields of JSON                                            yes     no       (dropped)
//	request, trace, span, correlation and audit IDs (with their name,
//	  8 characters or more)                                          yes     yes      <id>
//	temporary paths whose name was generated: mktemp, Python, Go
//	  (9 or 10 digits), macOS                                        yes     yes      <temp>
//	timestamps: RFC 3339 and the like, RFC 1123, ctime, syslog, klog
//	  (the severity stays), a bare hh:mm:ss; a field named time, ts
//	  or timestamp with Unix seconds or finer                        no      yes      <time>
//	UUIDs                                                            no      yes      <uid>
//	durations: 1.5s, 200ms, 5m12s, 3d4h, 36h, 34d, "2 seconds"       no      yes      <duration>
//	ephemeral ports (32768 and up) of an IP address or localhost     no      yes      <port>
//	hex addresses: 0x and 9 to 16 digits                             no      yes      <address>
//
// Kept on purpose: line numbers, counters, percentages, a lone "100m" (it may be millicores), names with generated
// suffixes (another pod is another object), image digests and commit hashes, server ports, 8-digit error codes, dates
// without a time. In inputs a time, a duration, a port or a UUID is what the agent chose, so changing it is a change.

// MaxNormalised is the length in bytes up to which texts are normalised. Longer ones are compared as they are.
const MaxNormalised = 64 << 10

// pattern replaces what it matches within one line. Its first group is kept.
type pattern struct {
	expression  *regexp.Regexp
	replacement string
	// needs are texts without any of which a line cannot match; they spare most lines the expression.
	needs []string
}

func replace(placeholder, expression string, needs ...string) pattern {
	return pattern{regexp.MustCompile(expression), "${1}<" + placeholder + ">", needs}
}

const (
	uuid  = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`
	clock = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?`
	zone  = `(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?`
	day   = `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)`
	month = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`
	// moment is a date with a time of day.
	moment = `\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?` + zone
	// is stands between a field's name and its value in JSON, YAML, headers and key=value logs.
	is        = `\\?"?[ \t]*[:=][ \t]*\\?"?`
	ephemeral = `(?:3276[89]|327[7-9]\d|32[89]\d\d|3[3-9]\d{3}|[45]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])`
)

var (
	named = []pattern{
		replace("volatile", `(\bresourceVersion`+is+`)\d+\b`, "resourceVersion"),
		replace("volatile", `(\buid`+is+`)`+uuid+`\b`, "uid"),
		replace("volatile", `(\bcreationTimestamp`+is+`)`+moment, "creationTimestamp"),
		replace("id", `(?i)(\b(?:x-)?(?:amzn-|amz-)?(?:request|req|trace|span|correlation|audit)[-_ ]?id`+is+`)[A-Za-z0-9+/=_.\-]{8,}`, "id", "Id", "ID", "iD"),
		replace("temp", `((?:/var)?/tmp/)(?:tmp\.[A-Za-z0-9]{6,12}|tmp[a-z0-9_]{8})\b`, "/tmp/"),
		replace("temp", `((?:/var)?/tmp/[A-Za-z][A-Za-z._\-]*)\d{9,10}\b`, "/tmp/"),
		replace("temp", `(/var/folders/)[^/\s"']+/[^/\s"']+/T\b`, "/var/folders/"),
	}
	measured = []pattern{
		replace("time", `\b([IWEF])\d{4} `+clock+` +\d+\b`, ":"),
		replace("time", `()\b(?:`+day+`,? \d\d? `+month+` \d{4} `+clock+zone+
			`|`+day+` `+month+` [ \d]\d `+clock+` (?:[A-Z]{3,4} )?\d{4}\b|`+month+` [ \d]\d `+clock+`|`+moment+`)`, ":"),
		replace("time", `((?:^|[^:\w.])(?:time|timestamp|ts)`+is+`)\d{10,19}(?:\.\d+)?\b`, "time", "ts"),
		replace("time", `((?:^|[^:\w]))`+clock+`\b`, ":"),
		replace("uid", `()\b`+uuid+`\b`, "-"),
		// A duration stands apart: "web-5s" is a name and "/5s" part of a path.
		replace("duration", `(^|[^\w.\-/])(?:\d{1,4}d(?:\d\d?h)?|\d{1,5}h(?:\d\d?m)?(?:\d\d?(?:\.\d+)?s)?|\d{1,5}m\d\d?(?:\.\d+)?s`+
			`|\d{1,9}(?:\.\d+)?(?:ns|us|µs|ms|s| milliseconds?| seconds?| minutes?| hours?| days?))\b`, "s", "d", "h", "minute"),
		replace("port", `((?:\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|\]|\blocalhost):)`+ephemeral+`\b`, ":"),
		replace("address", `()\b0x[0-9a-fA-F]{9,16}\b`, "0x"),
	}
)

// NormaliseResult removes the volatile fields of a tool's answer.
func NormaliseResult(text string) string {
	if len(text) > MaxNormalised {
		return text
	}
	return apply(text, named, measured)
}

// NormaliseInputs removes the volatile fields of arguments and brings a JSON object or array into one form: fields by
// name, no spaces.
func NormaliseInputs(text string) string {
	if len(text) > MaxNormalised {
		return text
	}
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return apply(text, named)
	}
	decoder := json.NewDecoder(strings.NewReader(trimmed))
	// Large numbers stay what they are.
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return apply(text, named)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return apply(text, named)
	}
	var canonical bytes.Buffer
	encoder := json.NewEncoder(&canonical)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(withoutManagedFields(value)); err != nil {
		return apply(text, named)
	}
	return apply(strings.TrimSuffix(canonical.String(), "\n"), named)
}

// withoutManagedFields drops what the API server keeps beside an object. The other volatile fields have one line each
// and are found by name in the text.
func withoutManagedFields(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "managedFields")
		for _, child := range value {
			withoutManagedFields(child)
		}
	case []any:
		for _, child := range value {
			withoutManagedFields(child)
		}
	}
	return value
}

// apply works line by line: no volatile field spans two. The order of the families is theirs.
func apply(text string, families ...[]pattern) string {
	var normalised strings.Builder
	normalised.Grow(len(text))
	for line := range strings.Lines(text) {
		for i, family := range families {
			// What is measured has a digit.
			if i == 0 || strings.ContainsAny(line, "0123456789") {
				line = applyLine(line, family)
			}
		}
		normalised.WriteString(line)
	}
	return normalised.String()
}

func applyLine(line string, family []pattern) string {
	for i := range family {
		p := &family[i]
		if slices.ContainsFunc(p.needs, func(need string) bool { return strings.Contains(line, need) }) {
			line = p.expression.ReplaceAllString(line, p.replacement)
		}
	}
	return line
}
