package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The rows that take the least time, with a shorter fault than make chaos has; the others run in make chaos.
//
// Proves K-2, K-6, F-1, G-5.
func TestNobodyIsHurtByTheFaultsThatTakeLeastTime(t *testing.T) {
	log.SetLogger(logr.Discard())
	for _, r := range []*row{replicasKilled(), webhookConfigurationDeleted(), namespaceDeleted()} {
		t.Run(r.name, func(t *testing.T) {
			r.hold = 3 * time.Second
			m, err := r.measure(t.Context(), func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			for i, cell := range cells(r, m) {
				t.Logf("%s: %s", columns[i], cell)
			}
			for _, bad := range verdict(r, m) {
				t.Error(bad)
			}
			if r.name == "replicas-killed" && m.Auto.Passed > 0 {
				t.Errorf("AUTO passed %d times without a replica", m.Auto.Passed)
			}
		})
	}
}

func TestEveryRowHasANameAndSaysWhatIsDoneAndExpected(t *testing.T) {
	var names []string
	for _, r := range rows() {
		if r.name == "" || r.title == "" || r.done == "" || r.expected == "" || r.auto == "" || r.begin == nil || slices.Contains(names, r.name) {
			t.Errorf("row %q %q", r.name, r.title)
		}
		names = append(names, r.name)
	}
	if _, err := choose(rows(), "replicas-killed,nothing"); err == nil || !strings.Contains(err.Error(), `there is no row "nothing"`) {
		t.Errorf("a row that is not there: %v", err)
	}
}
