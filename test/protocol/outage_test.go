package protocol_test

import (
	"errors"
	"fmt"
	"testing"

	"stepbeyond.dev/stepbeyond/internal/grant"
)

// reserved holds a request of each scene where its use is reserved and it has no answer yet.
func reserved(t *testing.T, scenes []*scene, server int) []<-chan answer {
	t.Helper()
	sent := make([]<-chan answer, len(scenes))
	for i, s := range scenes {
		s.approve(t)
		order(t, grant.StepReserved, s.name, wait)
		sent[i] = s.send(t, server)
		eventually(t, func() error {
			if hits(t, grant.StepReserved, "waited", s.name) > 0 {
				return nil
			}
			select {
			case <-sent[i]: // it did not come so far
				sent[i] = s.send(t, server)
			default:
			}
			return fmt.Errorf("no request waits at %s", grant.StepReserved)
		})
	}
	return sent
}

// resume lets the agents of interrupted scenes go on, and checks that each has its one effect.
func resume(t *testing.T, scenes []*scene, sent []<-chan answer) {
	t.Helper()
	for i, s := range scenes {
		takeBack(t, grant.StepReserved, s.name)
		if got := <-sent[i]; got.succeeded() {
			t.Errorf("%s: the interrupted request succeeded", s.family.name)
		}
	}
	for _, s := range scenes {
		if n := s.count(t); n != 0 {
			t.Errorf("%s: %d effects of the interrupted request", s.family.name, n)
		}
		s.persist(t)
		if end := s.verify(t); end.effects != 1 {
			t.Errorf("%s: %d effects, want one: %s", s.family.name, end.effects, describe(s.home.grant(t, s.grant)))
		} else {
			t.Logf("%-7s uses: %s", s.family.name, end.outcomes)
		}
		s.clear(t)
	}
}

func scenesOf(t *testing.T, names ...string) []*scene {
	t.Helper()
	var scenes []*scene
	for _, name := range names {
		scenes = append(scenes, newScene(t, familyOf(t, name).in("outage")))
	}
	return scenes
}

// Proves G-5, F-1.
func TestAnAPIServerThatDiesWhileAUseIsReservedLosesNothing(t *testing.T) {
	scenes := scenesOf(t, "create", "patch", "delete", "evict", "status")
	sent := reserved(t, scenes, 1)
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume(t, scenes, sent)
}

// Proves G-5, F-1.
func TestBothReplicasThatDieWhileAUseIsReservedLoseNothing(t *testing.T) {
	scenes := scenesOf(t, "create", "patch", "delete", "evict", "status")
	sent := reserved(t, scenes, 0)
	if err := errors.Join(replicas[0].crash(), replicas[1].crash()); err != nil {
		t.Fatal(err)
	}
	resume(t, scenes, sent)
}
