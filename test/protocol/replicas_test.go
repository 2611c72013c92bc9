package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// replica of the manager that is started again whenever it ends, as the kubelet does.
type replica struct {
	*env.Manager
	mu      sync.Mutex // of starts and kills
	ending  bool
	began   int64 // end of the log when the process was started
	ended   sync.WaitGroup
	failure error // an end that nobody wanted
}

// keep starts a replica and keeps it running.
func keep(manager *env.Manager) (*replica, error) {
	r := &replica{Manager: manager}
	if err := r.start(); err != nil {
		return nil, err
	}
	r.ended.Go(r.restart)
	return r, nil
}

func (r *replica) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return errEnding
	}
	if info, err := os.Stat(r.Logs()); err == nil {
		r.began = info.Size()
	}
	return r.Start()
}

var errEnding = errors.New("the tests are over")

func (r *replica) restart() {
	for {
		how := r.Wait()
		led := r.led()
		err := r.start()
		switch {
		case errors.Is(err, errEnding):
			return
		case err != nil:
			r.failure = errors.Join(r.failure, err)
			return
		}
		var exit *exec.ExitError
		// An election that was lost for lack of time ends in 1, a kill in -1, a fault in 137; a panic in 2.
		if errors.As(how, &exit) && exit.ExitCode() == 2 {
			r.failure = errors.Join(r.failure, fmt.Errorf("a replica panicked: %w", how))
		}
		if led {
			r.failure = errors.Join(r.failure, abdicate())
		}
	}
}

// led tells whether the process that was started last has led.
func (r *replica) led() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := os.ReadFile(r.Logs())
	return err == nil && bytes.Contains(text[min(r.began, int64(len(text))):], []byte("uccessfully acquired lease"))
}

// abdicate frees the seat of a leader that is dead, so that no test waits for its lease to run out.
func abdicate() error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "stepbeyond-manager"}}
	ctx, cancel := context.WithTimeout(context.Background(), waitAtMost)
	defer cancel()
	if err := client.IgnoreNotFound(admin.Delete(ctx, lease)); err != nil {
		return fmt.Errorf("free the leader's seat: %w", err)
	}
	return nil
}

// crash ends the process at once.
func (r *replica) crash() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Kill()
}

// end stops the replica for good, and tells what went wrong with it.
func (r *replica) end() error {
	r.mu.Lock()
	r.ending = true
	err := r.Stop()
	r.mu.Unlock()
	r.ended.Wait()
	return errors.Join(err, r.failure)
}
