package rotation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	// every is the distance of the writes of a load.
	every = 100 * time.Millisecond
	free  = "default" // a namespace that nobody governs
)

var loads atomic.Int32

// load writes ConfigMaps at a steady rate, each once.
type load struct {
	client    client.Client
	namespace string
	stamped   bool // what is written has to carry a stamp: the manager was asked
	name      string

	pause    sync.Mutex // held while nothing must be under way
	stop     context.CancelFunc
	ended    sync.WaitGroup
	written  int
	failures []error
}

func startLoad(t *testing.T, c client.Client, namespace string, stamped bool) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{client: c, namespace: namespace, stamped: stamped, name: fmt.Sprintf("load-%d", loads.Add(1)), stop: cancel}
	l.ended.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			l.pause.Lock()
			if err := l.write(t.Context(), n); err != nil {
				l.failures = append(l.failures, fmt.Errorf("%s write %d: %w", time.Now().Format(time.TimeOnly), n, err))
			} else {
				l.written++
			}
			l.pause.Unlock()
		}
	})
	return l
}

func (l *load) write(ctx context.Context, n int) error {
	object := configMap(l.namespace, fmt.Sprintf("%s-%d", l.name, n))
	if err := l.client.Create(ctx, object); err != nil {
		return err
	}
	if l.stamped && object.Annotations[v1alpha1.AnnotationCreatedBy] == "" {
		return errors.New("went past the manager")
	}
	return nil
}

// end stops the load, prints what it did and fails the test for each write that failed.
func (l *load) end(t *testing.T, who string) {
	t.Helper()
	l.stop()
	l.ended.Wait()
	t.Logf("%s: %d writes, %d failed", who, l.written, len(l.failures))
	for _, err := range l.failures[:min(5, len(l.failures))] {
		t.Errorf("%s: %v", who, err)
	}
	if l.written == 0 {
		t.Errorf("%s wrote nothing", who)
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	deadline := time.Now().Add(waitAtMost)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func installation(t *testing.T) *certs.Installation {
	t.Helper()
	_, in, err := certs.ReadInstallation(t.Context(), shared.Admin, env.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func editSecret(t *testing.T, change func(*corev1.Secret)) {
	t.Helper()
	eventually(t, "edit the Secret", func() error {
		secret := &corev1.Secret{}
		if err := shared.Admin.Get(t.Context(), client.ObjectKey{Namespace: env.SystemNamespace, Name: certs.InstallationSecret}, secret); err != nil {
			return err
		}
		change(secret)
		err := shared.Admin.Update(t.Context(), secret)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err
	})
}

// askToRotate does what `kubectl annotate secret stepbeyond-installation stepbeyond.dev/rotate=now` does.
func askToRotate(t *testing.T) {
	t.Helper()
	editSecret(t, func(s *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, certs.AnnotationRotate, certs.RotateNow)
	})
}

func awaitPhase(t *testing.T, rotations int, phase certs.Phase) {
	t.Helper()
	eventually(t, "phase "+string(phase), func() error {
		if in := installation(t); in.Phase() != phase || in.Rotations != rotations {
			return fmt.Errorf("phase %s after %d rotations, want %s after %d", in.Phase(), in.Rotations, phase, rotations)
		}
		return nil
	})
	t.Logf("%s phase %s", time.Now().Format(time.TimeOnly), phase)
}

// logged gives what the manager logged after the mark, which an earlier call returned.
func logged(t *testing.T, m *env.Manager, mark int) (string, int) {
	t.Helper()
	text, err := os.ReadFile(m.Logs())
	if err != nil {
		t.Fatal(err)
	}
	return string(text[min(mark, len(text)):]), len(text)
}
