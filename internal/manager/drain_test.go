package manager

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Proves K-6.
func TestAnEndingReplicaAnswersAndHasItsConnectionsClosed(t *testing.T) {
	told, tell := context.WithCancel(t.Context())
	var d drain
	const delay = 200 * time.Millisecond
	serving, stop := d.delayed(told, delay)
	defer stop()
	server := httptest.NewServer(d.handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })))
	defer server.Close()
	closes := func() bool {
		t.Helper()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != "answer" {
			t.Fatalf("answer %q, %v", body, err)
		}
		return response.Close
	}
	if closes() || d.ready(nil) != nil {
		t.Error("a replica that goes on is not ready or has connections closed")
	}
	told2 := time.Now()
	tell()
	for !d.ending.Load() {
		time.Sleep(time.Millisecond)
	}
	if !closes() || d.ready(nil) == nil {
		t.Error("an ending replica is ready or keeps connections")
	}
	<-serving.Done()
	if took := time.Since(told2); took < delay {
		t.Errorf("it served for %s after it was told, want at least %s", took, delay)
	}
}

func TestAReplicaThatFailsEndsAtOnce(t *testing.T) {
	var d drain
	serving, stop := d.delayed(t.Context(), time.Hour)
	stop()
	<-serving.Done()
	if d.ending.Load() {
		t.Error("a replica that was not told to end counts as ending")
	}
}
