package status

import (
	"encoding/json"
	"fmt"
)

// Configuration converts a computed status into its apply configuration C. Both are the same JSON by construction; an
// error names a field that they do not share.
func Configuration[C any](computed any) (*C, error) {
	text, err := json.Marshal(computed)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", computed, err)
	}
	configuration := new(C)
	if err := json.Unmarshal(text, configuration); err != nil {
		return nil, fmt.Errorf("decode %T as %T: %w", computed, configuration, err)
	}
	return configuration, nil
}
