package notify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

// maxSecret bounds the size of a mounted key; a bundle of authorities is the largest.
const maxSecret = 1 << 20

// Secrets are the Secrets that are mounted into the manager: one folder per Secret, one file per key. They are read anew for
// each delivery, so a changed Secret counts as soon as the kubelet has written it. The manager needs no right to read
// Secrets for it.
type Secrets struct{ Directory string }

// read gives a key without surrounding space. The error names the Secret and the key and never repeats what they hold.
func (s Secrets) read(ref *managerconfig.SecretRef) (string, error) {
	path := filepath.Join(s.Directory, ref.Name, ref.Key)
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("key %s of Secret %s is not mounted: %w", ref.Key, ref.Name, err)
	} else if info.Size() > maxSecret {
		return "", fmt.Errorf("key %s of Secret %s is larger than %d bytes", ref.Key, ref.Name, maxSecret)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read key %s of Secret %s: %w", ref.Key, ref.Name, err)
	}
	return strings.TrimSpace(string(text)), nil
}
