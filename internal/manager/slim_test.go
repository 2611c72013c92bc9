package manager

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// fleet are sessions as the API server sends them: each decoded by itself, and alike but for names, UIDs and times.
func fleet(t *testing.T, n int) []*v1alpha1.AgentSession {
	t.Helper()
	const text = `{"apiVersion":"stepbeyond.dev/v1alpha1","kind":"AgentSession","metadata":{"name":"job-%[1]d","namespace":"team",
		"uid":"uid-%[1]d","resourceVersion":"%[1]d","labels":{"stepbeyond.dev/template":"agent"},
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","note":"kept"},
		"managedFields":[{"manager":"manager","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}}}]},
		"spec":{"identity":{"type":"ServiceAccount","serviceAccountName":"agent","rootOwner":{"kind":"Job","name":"job-%[1]d","uid":"owner-%[1]d"}},
		"userName":"dora@acme.example","modelTier":"medium","initiativeMode":"standard",
		"authority":{"stages":["understand","execute"],"capabilities":["read_context","execute_local"]},"deadlineTime":"2026-12-02T00:00:00Z"},
		"status":{"state":"Active","guarantee":"runtime-backed","degraded":["Context","Memory"],"createdBy":"system:serviceaccount:a:b",
		"policies":[{"kind":"AgentPolicy","namespace":"stepbeyond-system","name":"standard","uid":"policy-uid","generation":1}],
		"conditions":[{"type":"Ready","status":"True","reason":"Active","message":"The session is served by profile standard.","lastTransitionTime":"2026-12-01T00:00:00Z"}]}}`
	var sessions []*v1alpha1.AgentSession
	for i := range n {
		session := &v1alpha1.AgentSession{}
		if err := json.Unmarshal(fmt.Appendf(nil, text, i), session); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, session)
	}
	return sessions
}

// Proves K-9: the cache keeps of a session what it says, without what only writers need.
func TestASlimSessionSaysTheSame(t *testing.T) {
	slim := slimSessions()
	for _, session := range fleet(t, 3) {
		want := session.DeepCopy()
		want.ManagedFields, want.Annotations = nil, map[string]string{"note": "kept"}
		got, err := slim(session)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("session (-want +got):\n%s", diff)
		}
	}
}

// Proves K-9: what sessions of a fleet have in common is in memory once.
func TestSessionsShareWhatTheySayAlike(t *testing.T) {
	slim := slimSessions()
	sessions := fleet(t, 2)
	for _, session := range sessions {
		if _, err := slim(session); err != nil {
			t.Fatal(err)
		}
	}
	a, b := sessions[0], sessions[1]
	for name, same := range map[string]bool{
		"stages":            &a.Spec.Authority.Stages[0] == &b.Spec.Authority.Stages[0],
		"capabilities":      &a.Spec.Authority.Capabilities[0] == &b.Spec.Authority.Capabilities[0],
		"degraded":          &a.Status.Degraded[0] == &b.Status.Degraded[0],
		"policies":          &a.Status.Policies[0] == &b.Status.Policies[0],
		"namespace":         sameText(a.Namespace, b.Namespace),
		"user":              sameText(a.Spec.UserName, b.Spec.UserName),
		"service account":   sameText(a.Spec.Identity.ServiceAccountName, b.Spec.Identity.ServiceAccountName),
		"owner's kind":      sameText(a.Spec.Identity.RootOwner.Kind, b.Spec.Identity.RootOwner.Kind),
		"creator":           sameText(a.Status.CreatedBy, b.Status.CreatedBy),
		"condition type":    sameText(a.Status.Conditions[0].Type, b.Status.Conditions[0].Type),
		"condition message": sameText(a.Status.Conditions[0].Message, b.Status.Conditions[0].Message),
	} {
		if !same {
			t.Errorf("%s: each session has its own", name)
		}
	}
	if &a.Status.Conditions[0] == &b.Status.Conditions[0] {
		t.Error("conditions are shared, and each session has its own times")
	}
	a.Labels["probe"] = "one map"
	if b.Labels["probe"] == "" {
		t.Error("labels: each session has its own")
	}
}

func sameText(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// Proves K-9: labels that differ in each session do not make the transform remember without bound.
func TestWhatIsSharedIsBounded(t *testing.T) {
	s := shared[int]{equal: func(a, b int) bool { return a == b }}
	for i := range 10 * maxShared {
		value := i
		s.share(&value)
		if value != i {
			t.Fatalf("%d became %d", i, value)
		}
	}
	if len(s.known) != maxShared {
		t.Errorf("%d values are remembered, want %d", len(s.known), maxShared)
	}
}

// Proves K-9: a session takes at most half of what it may, so that a heap that has doubled since the last collection
// still holds 200,000 to the GiB.
func TestASlimSessionIsSmall(t *testing.T) {
	const n, most = 5000, (1 << 30) / 200_000 / 2
	slim := slimSessions()
	before := live()
	sessions := fleet(t, n)
	for _, session := range sessions {
		if _, err := slim(session); err != nil {
			t.Fatal(err)
		}
	}
	each := (live() - before) / n
	runtime.KeepAlive(sessions)
	t.Logf("%d bytes a session", each)
	if each > most {
		t.Errorf("%d bytes a session, want at most %d", each, most)
	}
}

// live is the heap in use after a collection, in bytes.
func live() uint64 {
	runtime.GC()
	runtime.GC() // the first one ends what a running one has begun
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
