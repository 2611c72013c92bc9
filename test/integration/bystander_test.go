package integration_test

import (
	"fmt"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	bystanderWriters = 16
	writesWhileDead  = 1000 // of each bystander
	writesWhileAlive = 4000
)

// The manager starts anew, so that its counter counts from 0, and no agent writes meanwhile: what the enforcing entry
// sees is the canary, and how often that asked stands in the API server's audit log.
//
// Proves K-2.
func TestTenThousandWritesOfOthersNeverReachTheWebhook(t *testing.T) {
	ctx := t.Context()
	h := at(t, "unnoticed")
	must(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "controller"}})
	exempt, err := accountActor(ctx, h.namespace, "controller", "")
	if err != nil {
		t.Fatal(err)
	}
	others := []*actor{ben, exempt}
	errorsBefore := counted(t, "apiserver_admission_match_condition_evaluation_errors_total", nil)
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}
	mark, err := plane.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range others {
		write(t, other, h.namespace, writesWhileDead)
	}
	startManager(t)
	for _, other := range others {
		write(t, other, h.namespace, writesWhileAlive)
	}
	controllersWrite(t, h.namespace)

	eventually(t, func() error {
		reviews, err := manager.Counter(ctx, "stepbeyond_admission_reviews_total", map[string]string{"entry": "enforce"})
		if err != nil {
			return err
		}
		// Counted after the reviews: a canary request that is under way is over by the next try.
		if asked := canaryReviews(t, mark); int(reviews) != asked {
			return fmt.Errorf("the enforcing entry saw %v reviews, the canary asked it %d times", reviews, asked)
		}
		return nil
	})
	for _, other := range others {
		const want = writesWhileDead + writesWhileAlive
		if got := unannotated(t, mark, other); got != want {
			t.Errorf("%s: %d writes that succeeded and that no entry of ours annotated, want %d", other.username, got, want)
		}
	}
	if after := counted(t, "apiserver_admission_match_condition_evaluation_errors_total", nil); after != errorsBefore {
		t.Errorf("%v match conditions erred", after-errorsBefore)
	}
	// The origin entry looks at creations and updates only, which are half of the writes.
	for entry, least := range map[string]float64{"enforce.stepbeyond.dev": 10000, "origin.stepbeyond.dev": 5000} {
		if excluded := counted(t, "apiserver_admission_match_condition_exclusions_total", map[string]string{"name": entry}); excluded < least {
			t.Errorf("the match condition of %s excluded %v requests, want at least %v", entry, excluded, least)
		}
	}
}

// write creates and deletes ConfigMaps, n writes in all, from several clients at once.
func write(t *testing.T, who *actor, namespace string, n int) {
	t.Helper()
	names := make(chan string)
	var writers sync.WaitGroup
	for range bystanderWriters {
		writers.Go(func() {
			for name := range names {
				object := configMap(namespace, name)
				if err := who.Create(t.Context(), object); err != nil {
					t.Errorf("%s: create %s: %v", who.username, name, err)
					continue
				}
				if err := who.Delete(t.Context(), object); err != nil {
					t.Errorf("%s: delete %s: %v", who.username, name, err)
				}
			}
		})
	}
	for i := range n / 2 {
		names <- fmt.Sprintf("note-%d", i)
	}
	close(names)
	writers.Wait()
}

// controllersWrite has system identities write in a governed namespace: a Deployment of a person, made and deleted.
func controllersWrite(t *testing.T, namespace string) {
	t.Helper()
	d := deployment(namespace, "shop")
	must(t, d)
	eventually(t, func() error {
		var pods corev1.PodList
		if err := admin.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app": "shop"}); err != nil {
			return err
		}
		if len(pods.Items) != 2 {
			return fmt.Errorf("the controllers made %d pods, want 2", len(pods.Items))
		}
		return nil
	})
	if err := admin.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), &appsv1.Deployment{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the garbage collector has not deleted the Deployment: %w", err)
		}
		return nil
	})
}

// canaryReviews counts the canary's requests that the enforcing entry answered. The other probes are refused before it.
func canaryReviews(t *testing.T, since env.AuditMark) int {
	t.Helper()
	events, err := plane.AuditSince(since, "system:serviceaccount:stepbeyond-canary:canary")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, event := range events {
		if event.ObjectRef.Resource == "configmaps" && event.ObjectRef.Name == "probe" {
			n++
		}
	}
	return n
}

// unannotated counts the writes that succeeded without an annotation of ours.
func unannotated(t *testing.T, since env.AuditMark, who *actor) int {
	t.Helper()
	events, err := plane.AuditSince(since, who.username)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, event := range events {
		if _, ours := event.Annotations[enforcer+"/decision"]; !ours && event.ResponseStatus.Code < 300 {
			n++
		}
	}
	return n
}

func counted(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	n, err := apiServerCounter(t.Context(), name, labels)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// startManager starts the manager and waits until it answers and is proven.
func startManager(t *testing.T) {
	t.Helper()
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	if err := manager.WaitReady(t.Context(), readyTimeout); err != nil {
		t.Fatal(err)
	}
}
