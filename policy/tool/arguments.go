package tool

import (
	"net/url"
	"regexp"
	"strings"
)

// maxValues bounds how many values of the arguments are looked at; a call with more is no pure read.
const maxValues = 2000

// Names of arguments, by their words.
var (
	amounts    = setOf("amount price cost fee currency payment salary budget")
	recipients = setOf("to recipient recipients cc bcc email emails phone attendee attendees invitee invitees")
	commands   = setOf("command cmd script shell bash code program executable entrypoint")
	statements = setOf("sql query statement cypher graphql mutation expression")
	actions    = setOf("method action operation verb mode event")
	places     = setOf("path file filename filepath uri kind resource type")
	accounts   = setOf("pin pincode cvc cvv ssn authorization bearer cookie")
)

var (
	// writingStatement begins with what changes data in SQL, Cypher or GraphQL.
	writingStatement = regexp.MustCompile(`(?i)(?:^|;)\s*(?:insert|update|delete|drop|alter|truncate|create|grant|revoke|merge|replace|call|exec|set|detach|remove|mutation|copy|do|with\b.*\b(?:insert|update|delete))\b`)
	lostStatement    = regexp.MustCompile(`(?i)(?:^|;)\s*(?:delete|drop|truncate|detach|remove)\b`)
	// secretPattern knows values that are secrets by their form.
	secretPattern = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{22,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.`)
	// secretPlace are files and kinds that hold secrets.
	secretPlace = regexp.MustCompile(`(?i)^secrets?$|(?:^|/)(?:\.env(?:\.[a-z]+)?|\.netrc|\.pgpass|id_(?:rsa|dsa|ecdsa|ed25519)|shadow|kubeconfig|credentials(?:\.json)?|\.npmrc|[^/]*\.(?:pem|key|pfx|p12))$|(?:^|/)\.(?:ssh|aws|kube|gnupg)(?:/|$)|/var/run/secrets/|(?:^|/)secrets/`)
)

// arguments reads names and values, at any depth.
func (r *reading) arguments(arguments map[string]any) {
	left := maxValues
	for name, value := range arguments {
		r.argument(words(name), value, &left)
	}
	if left < 0 {
		r.writing = true
	}
}

func (r *reading) argument(name []string, value any, left *int) {
	if *left--; *left < 0 {
		return
	}
	r.field(name, value)
	switch v := value.(type) {
	case map[string]any:
		for inner, value := range v {
			r.argument(words(inner), value, left)
		}
	case []any:
		for _, value := range v {
			r.argument(name, value, left)
		}
	case string:
		r.text(name, v)
	}
}

// field looks at the name of an argument that has a value.
func (r *reading) field(name []string, value any) {
	if value == nil || value == "" {
		return
	}
	r.amount = r.amount || anyOf(name, amounts)
	r.recipient = r.recipient || len(name) > 0 && (len(name) == 1 && recipients[name[0]] || recipients[name[len(name)-1]] && name[0] != "from")
	r.secretField = r.secretField || namesSecret(name) || len(name) == 1 && accounts[name[0]]
	r.command = r.command || anyOf(name, commands)
	if all, ok := value.(bool); ok && all && anyOf(name, many) && len(name) == 1 {
		r.everything = true
	}
}

func (r *reading) text(name []string, value string) {
	r.secretValue = r.secretValue || secretPattern.MatchString(value)
	r.everything = r.everything || value == "*"
	if anyOf(name, actions) {
		asked := words(value)
		r.writing = r.writing || len(asked) > 0 && (changing.has(asked[0]) || asked[0] == "post")
		r.losingStatement = r.losingStatement || len(asked) > 0 && losing.has(asked[0])
	}
	if anyOf(name, statements) {
		r.writing = r.writing || writingStatement.MatchString(value)
		r.losingStatement = r.losingStatement || lostStatement.MatchString(value)
	}
	r.secretTarget = r.secretTarget || anyOf(name, places) && secretPlace.MatchString(value)
	if scheme, _, found := strings.Cut(value, "://"); found && scheme != "file" && !strings.ContainsAny(scheme, " \n") {
		r.address = true
		parsed, err := url.Parse(value)
		r.addressWithData = r.addressWithData || err != nil || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != ""
	}
}

func anyOf(name []string, s set) bool {
	for _, word := range name {
		if s.has(word) {
			return true
		}
	}
	return false
}
