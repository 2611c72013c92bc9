package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/onboarding"
	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/stamp"
)

// Proves K-2.
func TestTheOnboardingEntryLetsEverythingPassWhateverFails(t *testing.T) {
	waits := func(client.Object) error { time.Sleep(time.Millisecond); return context.DeadlineExceeded }
	for _, tt := range []struct {
		name  string
		pod   string
		get   func(client.Object) error
		store func(*policystore.Store) *policystore.Store
		want  string
	}{
		{"a refusal", "", nil, nil, "WouldRefuse NoSession"},
		{"no policies", "", nil, func(*policystore.Store) *policystore.Store { return &policystore.Store{} }, "Undecided PolicyNotLoaded"},
		{"a panic in the engine", "", nil, func(s *policystore.Store) *policystore.Store { s.Current().Engine = nil; return s }, "Undecided Undecided"},
		{"a panic with request data as its value", "agent-0", func(client.Object) error { panic(password) }, nil, "Undecided Undecided"},
		{"an API server that does not answer in time", "agent-0", waits, nil, "Undecided Undecided"},
		{"an error of a lookup", "agent-0", func(client.Object) error { return errors.New("connection refused") }, nil, "Undecided Undecided"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := loaded(t, governedCluster())
			if tt.store != nil {
				store = tt.store(store)
			}
			reader := reads{get: tt.get}
			counter := onboarding.NewCounter(onboarding.NewMetric())
			o := &Onboarding{Counter: counter, Decider: &Enforce{
				Store: store, Sessions: &identity.Resolver{Cached: reader, Live: reader}, Origins: &origin.Finder{Live: reader},
				Stamper: stamp.Stamper{Key: []byte("key")}, Now: func() time.Time { return now },
			}}
			response := o.Handle(t.Context(), secretReview(t, tt.pod))
			if !response.Allowed || len(response.Warnings) > 0 || len(response.Patches) > 0 || response.Result != nil {
				t.Errorf("got %+v, want nothing but an allow", response)
			}
			if got := response.AuditAnnotations["outcome"] + " " + response.AuditAnnotations["reason"]; got != tt.want {
				t.Errorf("the audit log says %q, want %q", got, tt.want)
			}
			if diff := cmp.Diff([]string{tt.want}, series(t, counter.Metric)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			answered, err := json.Marshal(response)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(answered), password) {
				t.Errorf("the answer repeats the secret: %s", answered)
			}
		})
	}
}

// series are outcome and reason of each series.
func series(t *testing.T, counter *prometheus.CounterVec) []string {
	t.Helper()
	collected := make(chan prometheus.Metric, 16)
	counter.Collect(collected)
	close(collected)
	var list []string
	for metric := range collected {
		var written dto.Metric
		if err := metric.Write(&written); err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{}
		for _, pair := range written.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		list = append(list, labels["outcome"]+" "+labels["reason"])
	}
	return list
}

// The counter itself fails here: nothing is counted, and the request passes.
func TestTheOnboardingEntrySurvivesItsCounter(t *testing.T) {
	o := &Onboarding{Decider: &Enforce{Store: &policystore.Store{}, Now: func() time.Time { return now }}}
	if response := o.Handle(t.Context(), secretReview(t, "")); !response.Allowed || response.Result != nil {
		t.Errorf("got %+v, want an allow", response)
	}
}
