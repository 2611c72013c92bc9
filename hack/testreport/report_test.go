package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	tests := []struct {
		name   string
		events []string
		want   []string
		ok     bool
	}{
		{
			name: "a package that passes is one line and its tests are counted, subtests too",
			events: []string{
				`{"Action":"start","Package":"p"}`,
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"noise of a test that passes\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/row"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`,
				`{"Action":"output","Package":"p","Output":"ok  \tp\t0.01s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"ok  \tp\t0.01s", "2 passed, 0 failed"},
			ok:   true,
		},
		{
			name: "a failing test shows its output once and is named at the end",
			events: []string{
				`{"Action":"start","Package":"p"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: got 1, want 2\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.01s\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{
				"    a_test.go:9: got 1, want 2", "--- FAIL: TestA (0.00s)", "FAIL\tp\t0.01s",
				"FAILED p TestA", "0 passed, 1 failed",
			},
		},
		{
			name: "a package that does not build is a failure",
			events: []string{
				`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/a.go:1:1: syntax error\n"}`,
				`{"ImportPath":"p [p.test]","Action":"build-fail"}`,
				`{"Action":"start","Package":"p"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			},
			want: []string{"p/a.go:1:1: syntax error", "FAIL\tp [build failed]", "FAILED p", "0 passed, 1 failed"},
		},
		{
			name: "a skipped test is counted as skipped and not as passed",
			events: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"1 passed, 0 failed, 1 skipped"},
			ok:   true,
		},
		{
			name:   "a run without a test is no success",
			events: []string{`{"Action":"skip","Package":"p"}`},
			want:   []string{"no test ran", "0 passed, 0 failed"},
		},
		{
			name: "a line of the go command is passed on",
			events: []string{
				`go: downloading example.com/m v1.0.0`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
			},
			want: []string{"go: downloading example.com/m v1.0.0", "1 passed, 0 failed"},
			ok:   true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.follow(strings.NewReader(strings.Join(tt.events, "\n")), nil); err != nil {
				t.Fatal(err)
			}
			ok := r.finish()
			got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if ok != tt.ok {
				t.Errorf("finish() = %v, want %v", ok, tt.ok)
			}
		})
	}
}

func TestReportNamesThePackagesThatAreStillRunning(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	r.line(`{"Time":"2026-11-30T18:00:00Z","Action":"start","Package":"slow"}`)
	r.line(`{"Time":"2026-11-30T18:00:00Z","Action":"start","Package":"done"}`)
	r.line(`{"Action":"pass","Package":"done"}`)
	r.stillRunning(time.Date(2026, 11, 30, 18, 0, 30, 0, time.UTC))
	if diff := cmp.Diff("...    still running: slow (30 s)\n", out.String()); diff != "" {
		t.Errorf("heartbeat (-want +got):\n%s", diff)
	}
}
