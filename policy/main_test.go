package policy_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps failed properties from leaving files in testdata, where every folder is a scenario: the seed that the
// failure names reproduces it as well.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
