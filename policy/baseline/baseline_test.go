package baseline_test

import (
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

func TestEveryEmbeddedVersionCompiles(t *testing.T) {
	for _, version := range baseline.Versions() {
		p, err := baseline.Load(version)
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := policy.Compile(policy.Set{Baseline: p}); len(problems) > 0 {
			t.Errorf("%s: %v", version, problems)
		}
		if !strings.HasPrefix(p.ID.UID, version+":") {
			t.Errorf("identity %q does not begin with the version", p.ID.UID)
		}
		seen := map[string]bool{}
		for _, e := range p.Catalogue {
			if seen[e.Name] {
				t.Errorf("%s: entry %q stands twice", version, e.Name)
			}
			seen[e.Name] = true
		}
	}
}

func TestAnUnknownVersionIsRefusedByName(t *testing.T) {
	_, err := baseline.Load("v0")
	if err == nil || !strings.Contains(err.Error(), `"v0"`) || !strings.Contains(err.Error(), "v1") {
		t.Errorf("error = %v, want it to name v0 and what is embedded", err)
	}
}
