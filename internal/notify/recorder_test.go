package notify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

// An event that is an alarm is recorded and told; every other one is recorded.
func TestAlarmsAreRecordedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		var told []Alarm
		w.endpoints[0].send = func(_ context.Context, m *message) error {
			for _, item := range m.items {
				told = append(told, *item.Alarm)
			}
			return nil
		}
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		recorded := events.NewFakeRecorder(4)
		r := &Recorder{EventRecorder: recorded, Notifier: w.Notifier, Scheme: scheme, Now: time.Now, Alarms: map[string]managerconfig.Event{"EnforcementLost": managerconfig.EnforcementLost}}
		policy := &v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		r.Eventf(policy, nil, corev1.EventTypeWarning, "EnforcementLost", "Prove", "%s", "the canary\nwas admitted")
		r.Eventf(policy, nil, corev1.EventTypeNormal, "EnforcementProven", "Prove", "proven")
		w.after(time.Minute)
		want := []Alarm{{About: "ClusterAgentPolicy/default", Text: `the canary\nwas admitted`, Time: w.start.UTC()}}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if n := len(recorded.Events); n != 2 {
			t.Errorf("%d events are recorded, want both", n)
		}
	})
}
