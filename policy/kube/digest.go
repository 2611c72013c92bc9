package kube

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Key is the installation's digest key. Digests are keyed so that small secrets cannot be guessed from them.
type Key [32]byte

// NewKey takes exactly 32 bytes.
func NewKey(b []byte) (Key, error) {
	if len(b) != len(Key{}) {
		return Key{}, fmt.Errorf("digest key: must have %d bytes, has %d", len(Key{}), len(b))
	}
	return Key(b), nil
}

// digestVersion names the form and the algorithm. A change of either is another version, so that no old grant fits.
const digestVersion = "v1:"

// Digest of a canonical form: "v1:" and the HMAC-SHA-256 in hex.
func (k *Key) Digest(canonical []byte) string {
	return digestVersion + hex.EncodeToString(k.sum(canonical))
}

// Short stands for a value in lines that people and agents read: "v1:" and 8 hex digits. Equal values in equal places
// have equal digests; place keeps those of different objects apart. No canonical form begins like its input.
func (k *Key) Short(place, value string) string {
	sum := k.sum([]byte(fmt.Sprintf("value %q %q", place, value)))
	return digestVersion + hex.EncodeToString(sum[:4])
}

func (k *Key) sum(b []byte) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write(b)
	return mac.Sum(nil)
}
