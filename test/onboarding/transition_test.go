package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

func relabel(t *testing.T, namespace, profile string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelProfile+`":"`+profile+`"}}}`))
	if err := shared.Admin.Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
}

// The label changes from a profile that audits to one that enforces, and back, which changes nothing any more.
//
// Proves K-2, K-5, M-2.
func TestOneLabelEndsTheCountingAndBeginsTheEnforcement(t *testing.T) {
	ctx := t.Context()
	home := homeUnder(t, "moving", audits)
	must(t, configMap("moving", "theirs"))
	own := configMap("moving", "own")
	if err := home.Agent.Create(ctx, own); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { _, err := reported(ctx, "moving", "agent"); return err })

	relabel(t, "moving", cluster.Profile)
	refused := func() error {
		answer, err := home.Agent.Try(ctx, func(ctx context.Context, a *cluster.Actor) error {
			return a.Delete(ctx, configMap("moving", "theirs"), client.DryRunAll)
		})
		if err != nil || answer.Class != "ASK" {
			return fmt.Errorf("an ASK after the move: %+v, %w", answer, err)
		}
		return nil
	}
	eventually(t, refused)
	counted := reviews(t, "onboarding")
	own.Data = map[string]string{"made": "during onboarding"}
	answer, err := home.Agent.Try(ctx, func(ctx context.Context, a *cluster.Actor) error { return a.Update(ctx, own) })
	if err != nil || answer.Err != nil || answer.Class != "AUTO" {
		t.Errorf("what the agent made during onboarding is its own after it: %+v, %v", answer, err)
	}
	if answer, err := home.Agent.Try(ctx, func(ctx context.Context, a *cluster.Actor) error { return a.Delete(ctx, configMap("moving", "theirs")) }); err != nil ||
		answer.Err == nil || answer.Reason != "PermissionPending" {
		t.Errorf("an ASK after the move: %+v, %v", answer, err)
	}
	if after := reviews(t, "onboarding"); after != counted {
		t.Errorf("%v more reviews were counted", after-counted)
	}
	eventually(t, func() error {
		if got, err := reported(ctx, "moving", "agent"); err == nil {
			return fmt.Errorf("the report still lists %+v", got)
		}
		if series := counter(t, "stepbeyond_onboarding_reviews_total", map[string]string{"namespace": "moving"}); series > 0 {
			return fmt.Errorf("the metric still has %v reviews of the namespace", series)
		}
		return nil
	})
	eventually(t, func() error {
		got, err := session(ctx, "moving")
		for _, lost := range got.Degraded {
			if lost == v1alpha1.LostEnforcement {
				err = errors.Join(err, errors.New("the session still lacks enforcement"))
			}
		}
		return err
	})

	relabel(t, "moving", audits)
	time.Sleep(5 * time.Second) // what must not happen has no sign of its own
	if err := refused(); err != nil {
		t.Errorf("back under the auditing profile: %v", err)
	}
	if after := reviews(t, "onboarding"); after != counted {
		t.Errorf("back under the auditing profile %v more reviews were counted", after-counted)
	}
}

// The manager is killed, and then hangs with its sockets open.
//
// Proves K-2.
func TestUnderOnboardingNothingIsRefusedWhileTheManagerIsDeadOrHangs(t *testing.T) {
	home := homeUnder(t, "outage", audits)
	writes := func(round string) {
		t.Helper()
		var took []time.Duration
		for name, request := range map[string]func(context.Context, *cluster.Actor) error{
			"AUTO": func(ctx context.Context, a *cluster.Actor) error {
				return a.Create(ctx, configMap("outage", "own-"+round))
			},
			"ASK": func(ctx context.Context, a *cluster.Actor) error {
				return a.Delete(ctx, configMap("outage", "theirs-"+round))
			},
			"FORBIDDEN": func(ctx context.Context, a *cluster.Actor) error {
				return a.Create(ctx, &rbacv1.ClusterRoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: "outage-" + round}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				})
			},
		} {
			started := time.Now()
			if err := request(t.Context(), home.Agent); err != nil {
				t.Errorf("%s: %s: %v", round, name, err)
			}
			took = append(took, time.Since(started).Round(time.Millisecond))
		}
		t.Logf("%s: two creations and a deletion, in any order, took %v", round, took)
	}
	must(t, configMap("outage", "theirs-alive"), configMap("outage", "theirs-dead"), configMap("outage", "theirs-hanging"), configMap("outage", "theirs-back"))
	writes("alive")
	if err := shared.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	writes("dead")
	if err := errors.Join(shared.Manager.Start(), shared.Manager.WaitReady(t.Context(), waitAtMost)); err != nil {
		t.Fatal(err)
	}
	if err := shared.Manager.Pause(); err != nil {
		t.Fatal(err)
	}
	writes("hanging")
	if err := shared.Manager.Resume(); err != nil {
		t.Fatal(err)
	}
	writes("back")
	if err := shared.Manager.Stop(); err != nil {
		t.Fatal(err)
	}
	// What was counted since the last write is written before the process ends.
	if got, err := reported(t.Context(), "outage", "agent"); err != nil || got.Counts.WouldAsk < 1 || got.Counts.WouldRefuse < 1 {
		t.Errorf("after the manager has stopped: %+v, %v", got, err)
	}
	if err := errors.Join(shared.Manager.Start(), shared.Manager.WaitReady(t.Context(), waitAtMost)); err != nil {
		t.Fatal(err)
	}
}
