package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of a signed message (https://www.standardwebhooks.com): any library for Standard Webhooks verifies it.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const (
	keyPrefix          = "whsec_"
	minKey, maxKey     = 24, 64 // bytes
	maxKeys            = 4
	signatureOfVersion = "v1,"
)

var errKey = fmt.Errorf("the signing key is not %q and base64 of %d to %d bytes, one key per line, at most %d", keyPrefix, minKey, maxKey, maxKeys)

// parseKeys reads one key per line. The error repeats nothing of what was read.
func parseKeys(text string) ([][]byte, error) {
	lines := strings.Fields(text)
	if len(lines) == 0 || len(lines) > maxKeys {
		return nil, errKey
	}
	var keys [][]byte
	for _, line := range lines {
		encoded, ok := strings.CutPrefix(line, keyPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < minKey || len(key) > maxKey {
			return nil, errKey
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// sign adds the three headers: an HMAC-SHA-256 over id, time and body for each key, so that a receiver that knows the old
// or the new one accepts the message while a key is changed. The time lets a receiver refuse what somebody sends again.
func sign(header http.Header, keys [][]byte, id string, at time.Time, body []byte) error {
	if len(keys) == 0 {
		return errors.New("there is no key to sign with")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, 0, len(keys))
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, timestamp)
		mac.Write(body)
		signatures = append(signatures, signatureOfVersion+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	header.Set(HeaderID, id)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderSignature, strings.Join(signatures, " "))
	return nil
}
