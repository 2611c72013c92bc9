package breaker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Signature is the identity of one call: a keyed digest of each component in the order Action, Inputs, State, Source,
// Environment, Authority, Result. The digest of an unknown component is empty. No payload can be read back from it.
type Signature [len(components)]string

// positions in a Signature.
const (
	atAction = iota
	atInputs
	atState
	atSource
	atEnvironment
	atAuthority
	atResult
)

// Sign gives the signature of an event. Key is the installation's; without one, small secrets among the inputs could be
// guessed from their digests.
func Sign(key []byte, e *Event) Signature {
	parts := [...]Part{
		Known(e.Action), e.Inputs, e.State, e.Source, e.Environment, e.Authority, e.Result,
	}
	parts[atInputs].text = NormaliseInputs(e.Inputs.text)
	// A success and a failure with the same text are different answers.
	parts[atResult].text = string(e.Outcome) + "\x00" + NormaliseResult(e.Result.text)
	var s Signature
	for i := range parts {
		if !parts[i].known {
			continue
		}
		mac := hmac.New(sha256.New, key)
		// The component is part of the digest, so that equal texts of two components do not show as equal.
		mac.Write([]byte(components[i] + "\x00" + Component(parts[i].text)))
		s[i] = hex.EncodeToString(mac.Sum(nil)[:16])
	}
	return s
}

// same tells whether two calls are the same. A label alone is no identity: inputs and result have to be known.
func (s Signature) same(other Signature) bool {
	return s == other && s[atInputs] != "" && s[atResult] != ""
}

// differences are the components in which two signatures differ, other than the action.
func (s Signature) differences(other Signature) []Component {
	var changed []Component
	for i := atInputs; i <= atResult; i++ {
		if s[i] != other[i] {
			changed = append(changed, components[i])
		}
	}
	return changed
}

// changedSince compares with the newest call of the same action and inputs; nil when there is none in the window or
// when nothing changed.
func (s Signature) changedSince(observed []Signature) []Component {
	for _, earlier := range slices.Backward(observed) {
		if earlier[atAction] == s[atAction] && earlier[atInputs] == s[atInputs] && s[atInputs] != "" {
			return s.differences(earlier)
		}
	}
	return nil
}
