package crd_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden tables instead of comparing them")

// inTables marks the objects of the tables, so that those of other tests stay out.
const inTables = "crd-test/table"

func TestTablesAreAsDocumented(t *testing.T) {
	storeTableObjects(t)
	for name, args := range map[string]string{
		"clusteragentpolicies":  "get capol",
		"agentpolicies":         "get apol -A",
		"agentsessions":         "get agentsessions.stepbeyond.dev -n checkout",
		"agentsessions-wide":    "get asess -n checkout -o wide",
		"permissiongrants":      "get permissiongrants -A",
		"permissiongrants-wide": "get pgrant -A -o wide",
		"category":              "get stepbeyond -A",
	} {
		t.Run(name, func(t *testing.T) {
			arguments := append(strings.Fields(args), "-l", inTables, "--kubeconfig", kubeconfig)
			command := exec.CommandContext(t.Context(), kubectl, arguments...)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			out, err := command.Output()
			if err != nil {
				t.Fatalf("kubectl %s: %v: %s", args, err, stderr.String())
			}
			got := "$ kubectl " + args + "\n" + withoutAge(string(out))
			golden := filepath.Join("testdata", "tables", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("table (-want +got; -update writes it anew):\n%s", diff)
			}
		})
	}
}

// storeTableObjects creates the objects and then writes their status through the subresource.
func storeTableObjects(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"checkout", "payments", "stepbeyond-system"} {
		makeNamespace(t, namespace)
	}
	data, err := os.ReadFile("testdata/tables/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(data), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[inTables] = ""
		object.SetLabels(labels)
		status := object.Object["status"]
		if err := k8s.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		object.Object["status"] = status
		if err := k8s.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutAge replaces the cells of every AGE column, which depend on the clock, and sets the tables anew.
func withoutAge(tables string) string {
	var out bytes.Buffer
	for i, table := range strings.Split(strings.TrimRight(tables, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		lines := strings.Split(table, "\n")
		starts := columnStarts(lines[0])
		writer := tabwriter.NewWriter(&out, 6, 4, 3, ' ', 0)
		for _, line := range lines {
			var cells []string
			for column, start := range starts {
				end := len(line)
				if column+1 < len(starts) {
					end = min(starts[column+1], len(line))
				}
				cell := strings.TrimSpace(line[min(start, len(line)):end])
				if strings.HasPrefix(lines[0][start:], "AGE") && cell != "AGE" {
					cell = "<age>"
				}
				cells = append(cells, cell)
			}
			_, _ = writer.Write([]byte(strings.TrimRight(strings.Join(cells, "\t"), "\t") + "\n"))
		}
		_ = writer.Flush()
	}
	return out.String()
}

// columnStarts are the offsets at which the names of the columns begin.
func columnStarts(header string) []int {
	var starts []int
	for i := range header {
		if header[i] != ' ' && (i == 0 || header[i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	return starts
}
