package policytest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"stepbeyond.dev/stepbeyond/policy"
)

// combination is what one answer says, and of which stage.
type combination struct {
	class   policy.Class
	verdict policy.Verdict
	stage   policy.Stage
}

func (c combination) String() string { return fmt.Sprintf("%s, %s, %s", c.class, c.verdict, c.stage) }

var (
	classes  = []policy.Class{policy.ClassAuto, policy.ClassAutoWithDisclosure, policy.ClassAsk, policy.ClassForbidden}
	verdicts = []policy.Verdict{policy.VerdictAllow, policy.VerdictDeny, policy.VerdictPending, policy.VerdictHeld}
	stages   = []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish}
)

// impossible are the combinations that no answer has, each with the reason.
var impossible = []struct {
	classes  []policy.Class
	verdicts []policy.Verdict
	stages   []policy.Stage
	why      string
}{
	{
		classes[:2], []policy.Verdict{policy.VerdictPending}, stages,
		"a question is opened for ASK alone; a stage that the session lacks makes the class ASK",
	},
	{
		classes[3:], []policy.Verdict{policy.VerdictAllow, policy.VerdictPending, policy.VerdictHeld}, stages,
		"what is forbidden is denied before scope, steering and grants are looked at (requirement C-6)",
	},
	{
		classes[:3], []policy.Verdict{policy.VerdictHeld}, stages[:2],
		"a suspension and a hold spare reads and dry runs (requirement R-6), and nothing else is understand or propose: " +
			"what writes is at least execute, whatever is declared",
	},
}

// whyNot tells why no answer is the combination; empty when a case must reach it.
func whyNot(c combination) string {
	for _, row := range impossible {
		if slices.Contains(row.classes, c.class) && slices.Contains(row.verdicts, c.verdict) && slices.Contains(row.stages, c.stage) {
			return row.why
		}
	}
	return ""
}

// Proves G-1, C-1: the scenarios reach every combination of class, verdict and stage that an answer can be.
func TestEveryCombinationOfClassVerdictAndStageIsReached(t *testing.T) {
	reached := map[combination]int{}
	for _, folder := range scenarios(t) {
		for _, result := range results(t, folder) {
			for _, d := range result.Decisions {
				c := combination{d.Class, d.Verdict, d.Stage}
				reached[c]++
				if why := whyNot(c); why != "" {
					t.Errorf("%s, %q is %s, and it should be impossible: %s", folder, result.Name, c, why)
				}
			}
		}
	}
	var table strings.Builder
	writer := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(writer, "answers of all scenarios\t%s\t%s\t%s\t%s\n", stages[0], stages[1], stages[2], stages[3])
	known, possible := 0, 0
	for _, class := range classes {
		for _, verdict := range verdicts {
			fmt.Fprintf(writer, "%s, %s", class, verdict)
			for _, stage := range stages {
				c := combination{class, verdict, stage}
				known += reached[c]
				if whyNot(c) != "" {
					fmt.Fprint(writer, "\timpossible")
					continue
				}
				possible++
				fmt.Fprintf(writer, "\t%d", reached[c])
				if reached[c] == 0 {
					t.Errorf("no case is %s", c)
				}
			}
			fmt.Fprintln(writer)
		}
	}
	writer.Flush()
	t.Logf("%d of 64 combinations are possible\n%s", possible, table.String())
	total := 0
	for _, n := range reached {
		total += n
	}
	if known != total {
		t.Errorf("%d answers have a class, a verdict or a stage that the table lacks", total-known)
	}
}
