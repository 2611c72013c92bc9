package breaker_test

import (
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/policy/breaker"
)

// Proves L-3.
func TestVolatileFieldsAreRemovedFromResults(t *testing.T) {
	for text, want := range map[string]string{
		"at 2026-11-30T18:52:09Z":                                       "at <time>",
		"at 2026-11-30T18:52:09.123456+01:00.":                          "at <time>.",
		"at 2026-11-30 18:52 UTC":                                       "at <time>",
		"Date: Mon, 30 Nov 2026 18:52:09 GMT":                           "Date: <time>",
		"Mon Nov 30 18:52:09 UTC 2026":                                  "<time>",
		"Nov  3 18:52:09 node-1 kubelet":                                "<time> node-1 kubelet",
		"E1130 18:52:09.123456   4711 main.go:42] boom":                 "E<time> main.go:42] boom",
		"[18:52:09] and 18:52:10.5, done":                               "[<time>] and <time>, done",
		`{"ts":1764526329.25,"level":"error"}`:                          `{"ts":<time>,"level":"error"}`,
		"timestamp=1764526329123 level=info":                            "timestamp=<time> level=info",
		"uid 5d0c1f6e-0f1b-4d51-9a43-7c2d6b8e9c1f gone":                 "uid <uid> gone",
		`"uid": "5d0c1f6e-0f1b-4d51-9a43-7c2d6b8e9c1f"`:                 `"uid": "<volatile>"`,
		`resourceVersion: "123456"`:                                     `resourceVersion: "<volatile>"`,
		`{\"resourceVersion\": \"77\"}`:                                 `{\"resourceVersion\": \"<volatile>\"}`,
		"creationTimestamp: 2026-11-30T18:52:09Z":                       "creationTimestamp: <volatile>",
		"X-Request-Id: 9f8e7d6c5b":                                      "X-Request-Id: <id>",
		"failed (trace_id=4bf92f3577b34da6a3ce929d0e0e4736)":            "failed (trace_id=<id>)",
		"took 1.25s, then 200ms, 5m12s, 3d4h, 36h, 34d":                 "took <duration>, then <duration>, <duration>, <duration>, <duration>, <duration>",
		"retry in 2 seconds":                                            "retry in <duration>",
		"dial tcp 10.0.0.5:43512->10.96.0.1:443: connection refused":    "dial tcp 10.0.0.5:<port>->10.96.0.1:443: connection refused",
		"[::1]:50000 and localhost:65535":                               "[::1]:<port> and localhost:<port>",
		"panic at 0xc000123456":                                         "panic at <address>",
		"wrote /tmp/tmp.Ab12Cd34Ef and /tmp/tmpab12cd34/x":              "wrote /tmp/<temp> and /tmp/<temp>/x",
		"wrote /var/tmp/build-1234567890/a.out":                         "wrote /var/tmp/build-<temp>/a.out",
		"wrote /var/folders/x1/abc_def/T/file":                          "wrote /var/folders/<temp>/file",
		"web-7d4b9c6f5-x7k2p 1/1 Running 0 5m12s\nweb 1/1 Running 1 9s": "web-7d4b9c6f5-x7k2p 1/1 Running 0 <duration>\nweb 1/1 Running 1 <duration>",
	} {
		if got := breaker.NormaliseResult(text); got != want {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
	}
}

// Proves L-3.
func TestWhatSomebodyMayHaveSetStaysInResults(t *testing.T) {
	for _, text := range []string{
		"SyntaxError: unterminated string literal (detected at line 10)",
		"main.go:42:17: undefined: x", "attempt 3 of 5", "CPU 100m, memory 128Mi, 40Gi", "37 %", "replicas: 3",
		"pod web-7d4b9c6f5-x7k2p", "sha256:197480e02d03e273197480e02d03e273197480e02d03e273197480e02d03e273", "197480e02d03e273",
		"commit 1234567d", "HRESULT 0x80070005", "+0x1d", "service on 10.0.0.5:8080", "nodePort 10.0.0.5:30080", "port: 40000",
		"2026-11-30", "runAsUser: 1000", "generation: 4", "/tmp/deploy.yaml", "/tmp/backup-20261130", "version 1.2.3",
		"name web-5s", "time: 30", "request_id=short", "",
	} {
		if got := breaker.NormaliseResult(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if long := strings.Repeat("5s ", breaker.MaxNormalised); breaker.NormaliseResult(long) != long || breaker.NormaliseInputs(long) != long {
		t.Error("a text beyond the bound is changed")
	}
}

// Proves L-3.
func TestInputsAreComparedByContent(t *testing.T) {
	for name, row := range map[string]struct {
		a, b string
		same bool
	}{
		"the order of fields is no difference":              {`{"name":"web","namespace":"a"}`, ` {"namespace": "a", "name": "web"} `, true},
		"what the API server keeps is no difference":        {`{"metadata":{"name":"web","resourceVersion":"1","managedFields":[{"manager":"a"}]}}`, `{"metadata":{"name":"web","resourceVersion":"2"}}`, true},
		"in a list neither":                                 {`[{"managedFields":[],"a":1}]`, `[{"a":1}]`, true},
		"a request ID is no difference":                     {`{"requestId":"aaaaaaaa1"}`, `{"requestId":"bbbbbbbb2"}`, true},
		"a generated path is no difference":                 {"cat /tmp/tmp.Ab12Cd34Ef", "cat /tmp/tmp.Zz12Cd34Ef", true},
		"a manifest's resourceVersion is no difference":     {"metadata:\n  resourceVersion: \"1\"", "metadata:\n  resourceVersion: \"2\"", true},
		"a duration is one":                                 {`{"timeout":"30s"}`, `{"timeout":"60s"}`, false},
		"a port is one":                                     {"curl localhost:40000", "curl localhost:40001", false},
		"a time is one":                                     {`{"since":"2026-11-30T18:52:09Z"}`, `{"since":"2026-11-30T18:53:09Z"}`, false},
		"a UUID is one":                                     {"get 5d0c1f6e-0f1b-4d51-9a43-7c2d6b8e9c1f", "get 5d0c1f6e-0f1b-4d51-9a43-7c2d6b8e9c10", false},
		"a large number is one":                             {`{"n":9007199254740993}`, `{"n":9007199254740992}`, false},
		"the order of a list is one":                        {`[1,2]`, `[2,1]`, false},
		"text after the object is one":                      {`{"a":1} x`, `{"a":1}`, false},
		"what looks like JSON and is none is taken as text": {`{"a":`, `{"a": `, false},
		"a number and its text are not the same":            {`{"a":1}`, `{"a":"1"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := breaker.NormaliseInputs(row.a), breaker.NormaliseInputs(row.b)
			if (a == b) != row.same {
				t.Errorf("%q and %q", a, b)
			}
		})
	}
}

// Proves L-3.
func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{
		"", "at 2026-11-30T18:52:09Z 5m12s", `{"metadata":{"uid":"5d0c1f6e-0f1b-4d51-9a43-7c2d6b8e9c1f","managedFields":[]}}`,
		"E1130 18:52:09.123456   4711 main.go:42]", "10.0.0.5:43512 0xc000123456 /tmp/tmp.Ab12Cd34Ef", "X-Request-Id: 9f8e7d6c5b",
		"10:11:12:13:14:15", "[[[[[[", `{"a":[{"b":1e400}]}`, "\xff\xfe5s", "1 seconds 2 seconds", "resourceVersion: 5 resourceVersion=6",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, normalise := range map[string]func(string) string{"result": breaker.NormaliseResult, "inputs": breaker.NormaliseInputs} {
			once := normalise(text)
			if again := normalise(once); again != once {
				t.Errorf("%s: %q becomes %q and then %q", name, text, once, again)
			}
			if normalise(text) != once {
				t.Errorf("%s: %q has two forms", name, text)
			}
		}
		if !strings.ContainsAny(text, "0123456789") && breaker.NormaliseResult(text) != text {
			t.Errorf("%q has no digit and became %q", text, breaker.NormaliseResult(text))
		}
	})
}
