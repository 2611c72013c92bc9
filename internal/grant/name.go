package grant

import (
	"encoding/base32"
	"encoding/hex"
	"strconv"
	"strings"
)

// questionBytes of a digest name a question: 80 bits, which is 16 base32 characters.
const questionBytes = 10

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Question is the part of a digest ("v1:" and 64 hexadecimal digits) that names all questions about it: 16 characters,
// a to z and 2 to 7. It is empty for a text in another form, and the API server refuses the name that comes of it.
func Question(digest string) string {
	_, digits, _ := strings.Cut(digest, ":")
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) < questionBytes {
		return ""
	}
	return lowerBase32.EncodeToString(sum[:questionBytes])
}

// Name of the question-th PermissionGrant about a digest, counted from 1. It depends on nothing else, so that whoever
// asks the same at the same time creates the same object (requirement G-7).
func Name(digest string, question int32) string {
	name := "pg-" + Question(digest)
	if question > 1 {
		name += "-" + strconv.Itoa(int(question))
	}
	return name
}
