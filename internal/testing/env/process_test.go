package env

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func shell(t *testing.T, script string) *process {
	t.Helper()
	dir := t.TempDir()
	r, err := startReaper(filepath.Join(dir, "pids"), "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := startProcess(r, "shell", filepath.Join(dir, "log"), nil, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.kill(), r.stop()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAProcessThatEndsBeforeItIsReadyIsReportedWithItsLog(t *testing.T) {
	p := shell(t, "echo no such flag >&2; exit 2")
	err := p.await(t.Context(), startTimeout, func(context.Context) error { return errors.New("connection refused") })
	for _, want := range []string{"shell is not ready", "connection refused", "no such flag"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if !errors.Is(err, errEnded) {
		t.Errorf("error %v is not %v", err, errEnded)
	}
}

func TestAKilledProcessIsGone(t *testing.T) {
	p := shell(t, "trap '' TERM; while :; do sleep 1; done")
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.done:
	default:
		t.Error("kill returned before the process ended")
	}
}

func TestACounterIsTheSumOfTheSeriesWithTheLabels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE reviews_total counter
reviews_total{entry="enforce",class="AUTO",verdict="Allow"} 3
reviews_total{entry="enforce",class="ASK",verdict="Allow"} 4
reviews_total{entry="origin",class="AUTO",verdict="Allow"} 50
`))
	}))
	defer server.Close()
	m := &Manager{metricsURL: server.URL}
	for _, tc := range []struct {
		name   string
		metric string
		labels map[string]string
		want   float64
	}{
		{"one series", "reviews_total", map[string]string{"entry": "enforce", "class": "AUTO"}, 3},
		{"several series", "reviews_total", map[string]string{"entry": "enforce"}, 7},
		{"a label that no series has", "reviews_total", map[string]string{"entry": "enforce", "shard": "1"}, 0},
		{"a metric that was never counted", "other_total", nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := m.Counter(t.Context(), tc.metric, tc.labels)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
