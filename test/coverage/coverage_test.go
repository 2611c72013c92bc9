package coverage_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/coverage"
	"stepbeyond.dev/stepbeyond/policy"
)

// Proves K-7.
func TestTheCommittedMatrixIsThatOfTheAPIServer(t *testing.T) {
	committed, err := os.ReadFile("../../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	split := func(text string) []string { return strings.Split(text, "\n") }
	if diff := cmp.Diff(split(coverage.Render(rows)), split(string(committed))); diff != "" {
		t.Errorf("docs/coverage.md is old, run make coverage (-want +got):\n%s", diff)
	}
}

// Proves K-7.
func TestEveryVerbOfEveryResourceHasARow(t *testing.T) {
	for _, resource := range resources {
		for _, verb := range resource.Verbs {
			if !slices.ContainsFunc(rows, func(row coverage.Row) bool {
				gated := row.Own != 0 && row.Foreign != 0
				return row.Group == resource.Group && row.Path() == resource.Path() && slices.Contains(row.Versions, resource.Version) &&
					slices.Contains(row.Verbs, verb) && gated == (row.Gate != coverage.GateNone)
			}) {
				t.Errorf("%s %s of %s has no row with classes", verb, resource.Path(), resource.GroupVersion())
			}
		}
	}
}

// The own targets of the requests below are made by the administrator, so their stamp must be the server's.
func TestAnOwnTargetBearsTheStampThatTheServerWrites(t *testing.T) {
	r := request{row: rowOf("configmaps", coverage.OperationCreate), name: "stamped"}
	object, err := r.example()
	if err != nil {
		t.Fatal(err)
	}
	made, err := agent.Resource(configMaps).Namespace(home).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.stamp(object), made.GetAnnotations()[v1alpha1.AnnotationCreatedBy]); diff != "" {
		t.Errorf("stamp (-want +got):\n%s", diff)
	}
}

// leastPercent of the rows that ask or close a creation or a deletion are executed.
const leastPercent = 95

// Proves K-7: the API server answers as the matrix says.
func TestARequestOfEveryRowGetsItsClass(t *testing.T) {
	if len(rows) == 0 {
		t.Fatal("no rows")
	}
	// What requests name beside their target, as an autoscaler its Deployment, is there before the first.
	for _, row := range rows {
		if row.Operation == coverage.OperationDelete && row.GroupVersionResource != grants {
			for _, name := range []string{own, foreign} {
				if _, err := (request{row, name}).target(t.Context()); err != nil {
					t.Errorf("%s %s: %v", row.Path(), row.Group, err)
				}
			}
		}
	}
	promised, all := &tally{}, &tally{}
	for _, operation := range []coverage.Operation{
		coverage.OperationCreate, coverage.OperationUpdate, coverage.OperationConnect, coverage.OperationDeleteCollection, coverage.OperationDelete,
	} {
		for _, row := range rows {
			if row.Operation != operation {
				continue
			}
			skipped := execute(t, row)
			all.count(row, skipped)
			if max(row.Own, row.Foreign) >= policy.ClassAsk && operation != coverage.OperationUpdate && operation != coverage.OperationConnect {
				promised.count(row, skipped)
			}
		}
	}
	t.Logf("rows executed of those ASK or FORBIDDEN that create or delete: %s", promised)
	t.Logf("rows executed of all that write or connect: %s", all)
	for _, line := range all.skipped {
		t.Log("not executed: " + line)
	}
	if 100*promised.executed < leastPercent*promised.total {
		t.Errorf("executed %s, want at least %d %%", promised, leastPercent)
	}
}

// tally counts rows.
type tally struct {
	executed, total int
	skipped         []string
}

func (c *tally) count(row coverage.Row, skipped string) {
	c.total++
	if skipped == "" {
		c.executed++
		return
	}
	c.skipped = append(c.skipped, fmt.Sprintf("%s %s %s: %s", row.Operation, row.Path(), row.Group, skipped))
}

func (c *tally) String() string {
	return fmt.Sprintf("%d of %d (%.1f %%)", c.executed, c.total, 100*float64(c.executed)/float64(max(c.total, 1)))
}

// execute sends the requests of a row and says why it could not.
func execute(t *testing.T, row coverage.Row) (skipped string) {
	t.Helper()
	for _, r := range requestsOf(row) {
		got, answer, failure := r.try(t.Context())
		if failure != nil {
			skipped = failure.Error()
			continue
		}
		if diff := cmp.Diff(r.want(), got); diff != "" {
			t.Errorf("%s %s %s on %s (-want +got):\n%s%v", row.Operation, row.Path(), row.Group, r.name, diff, answer)
		}
	}
	return skipped
}
