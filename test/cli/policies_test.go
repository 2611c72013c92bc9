package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Proves K-5.
func TestPolicyTestsRunWithoutACluster(t *testing.T) {
	testscript.Run(t, parameters("policy-test"))
}

// Proves K-4, K-5, K-10.
func TestPoliciesAreCheckedAndExplainedAsAUserTypesIt(t *testing.T) {
	testscript.Run(t, parameters("policy-lint", "policy-effective"))
}

// Proves K-5.
func TestVersionsOfTheBaselineAreCompared(t *testing.T) {
	testscript.Run(t, parameters("policy-baseline"))
}

// Proves K-4.
func TestEveryWrongCommandLineAboutPoliciesNamesWhatIsWrong(t *testing.T) {
	testscript.Run(t, parameters("policy-wrong"))
}

// Proves K-1, K-4.
func TestTheStatusSaysWhatItsReaderMaySee(t *testing.T) {
	testscript.Run(t, parameters("status"))
}
