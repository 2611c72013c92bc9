package rotation_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/rotation"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// k8s reads and writes as an administrator, past any cache.
var k8s client.WithWatch

func TestMain(m *testing.M) {
	env.Main(m, func(_ context.Context, e *env.Env) (err error) {
		k8s, err = e.Client()
		return err
	})
}

const day = 24 * time.Hour

// timing of the tests, whose clock moves by a poll at a time.
var timing = certs.Timing{
	AuthorityLifetime: 365 * day, LeafLifetime: 90 * day, RotateEvery: 90 * day,
	Settle: 20 * time.Second, Overlap: 30 * time.Second, Poll: 10 * time.Second,
}

// world is an installation in a namespace of its own, with replicas of which the first leads, and a clock that the test
// moves.
type world struct {
	t         *testing.T
	namespace string
	clock     atomic.Int64
	replicas  []*replica
	rotator   *rotation.Rotator
	recorder  *events.FakeRecorder
	unproven  bool

	// used are the endpoints that an API server may call: those in force, and those that were until a moment ago.
	used []*use
	// configured tells that this leader has written the configurations.
	configured bool
	// writes of the leader that change a phase or a webhook configuration.
	writes, crashAt int
	crashAfter      bool
}

type use struct {
	endpoint enforcement.Endpoint
	replaced time.Time // zero while it is in force
}

// replica serves like the manager, in this process.
type replica struct {
	keeper *rotation.Keeper
	herald *rotation.Herald
	url    string
	// silent replicas neither look at the Secret nor say anything.
	silent bool
}

var namespaces atomic.Int32

func newWorld(t *testing.T, replicas int) *world {
	t.Helper()
	w := &world{t: t, namespace: fmt.Sprintf("world-%d", namespaces.Add(1)), recorder: events.NewFakeRecorder(100), crashAt: -1}
	w.clock.Store(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	if err := k8s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}); err != nil {
		t.Fatal(err)
	}
	for range replicas {
		w.replicas = append(w.replicas, w.start())
	}
	w.lead()
	w.configure()
	return w
}

func (w *world) now() time.Time { return time.Unix(0, w.clock.Load()) }

func (w *world) pass(d time.Duration) { w.clock.Add(int64(d)) }

// start starts a replica from the Secret.
func (w *world) start() *replica {
	w.t.Helper()
	installation, err := certs.LoadInstallation(w.t.Context(), k8s, k8s, w.namespace, w.now(), timing.AuthorityLifetime)
	if err != nil {
		w.t.Fatal(err)
	}
	r := &replica{}
	r.keeper, err = rotation.NewKeeper(rotation.Settings{
		Live: k8s, Namespace: w.namespace, Hosts: []string{"127.0.0.1"}, Timing: timing, Now: w.now,
		Endpoint: enforcement.Endpoint{URL: "https://127.0.0.1:1"},
	}, installation)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.herald, err = rotation.NewHerald(r.keeper, k8s); err != nil {
		w.t.Fatal(err)
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: r.keeper.GetCertificate})
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{
		Handler:  r.keeper.Route(map[string]http.Handler{enforcement.PathEnforce: ok}),
		ErrorLog: log.New(io.Discard, "", 0), // handshakes that the tests have refused
	}
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(func() { _ = server.Close() })
	r.url = "https://" + listener.Addr().String()
	return r
}

// lead makes the first replica the leader, with a memory of nothing.
func (w *world) lead() {
	w.rotator = &rotation.Rotator{
		Keeper: w.replicas[0].keeper, Client: w.faulty(), Proven: func() bool { return !w.unproven }, Recorder: w.recorder,
	}
}

var errCrash = errors.New("the leader dies")

// faulty is a client whose writes are counted, and with which the leader dies before or after one of them.
func (w *world) faulty() client.Client {
	fault := func(write func() error) error {
		n := w.writes
		w.writes++
		if n == w.crashAt && !w.crashAfter {
			return errCrash
		}
		if err := write(); err != nil {
			return err
		}
		if n == w.crashAt {
			return errCrash
		}
		return nil
	}
	return interceptor.NewClient(k8s, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return fault(func() error { return c.Update(ctx, object, options...) })
		},
	})
}

// configure does what the scope's controller does with the endpoint. The leader can die after each configuration.
func (w *world) configure() {
	w.t.Helper()
	endpoint, err := w.replicas[0].keeper.Endpoint(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if last := len(w.used) - 1; w.configured && last >= 0 && w.used[last].endpoint.PathPrefix == endpoint.PathPrefix &&
		string(w.used[last].endpoint.CABundle) == string(endpoint.CABundle) {
		return
	}
	objects, err := enforcement.Webhooks(enforcement.Scope{}, endpoint, "nobody")
	if err != nil {
		w.t.Fatal(err)
	}
	for i, object := range objects {
		if err := k8s.Apply(w.t.Context(), object, enforcement.FieldOwner, client.ForceOwnership); err != nil {
			w.t.Fatal(err)
		}
		if i == 0 {
			w.used = append(w.used, &use{endpoint: endpoint})
		}
		w.writes++
		if w.writes-1 == w.crashAt {
			w.crash()
			return
		}
	}
	w.configured = true
	for _, u := range w.used[:len(w.used)-1] {
		if u.replaced.IsZero() {
			u.replaced = w.now()
		}
	}
}

// crash replaces the leader's process by one that knows only what the Secret says.
func (w *world) crash() {
	w.t.Helper()
	w.crashAt, w.configured = -1, false
	w.replicas[0] = w.start()
	w.lead()
	w.configure()
}

// tick is one poll of everybody, after which every replica must answer whatever an API server may call.
func (w *world) tick() {
	w.t.Helper()
	w.pass(timing.Poll)
	for _, r := range w.replicas {
		if !r.silent {
			if err := r.herald.Round(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.check()
	if err := w.rotator.Step(w.t.Context()); errors.Is(err, errCrash) {
		w.crash()
	} else if err != nil {
		w.t.Fatal(err)
	}
	w.check()
	w.configure()
	w.check()
}

// check calls every replica as every API server may do now.
func (w *world) check() {
	w.t.Helper()
	kept := w.used[:0]
	for _, u := range w.used {
		if u.replaced.IsZero() || w.now().Sub(u.replaced) < timing.Settle {
			kept = append(kept, u)
		}
	}
	w.used = kept
	for i, r := range w.replicas {
		for j, u := range w.used {
			if err := w.call(r, u.endpoint); err != nil {
				w.t.Fatalf("phase %s, replica %d, endpoint %d of %d: %v", w.installation().Phase(), i, j, len(w.used), err)
			}
		}
	}
}

// call opens a new connection, as an API server would that trusts the bundle.
func (w *world) call(r *replica, e enforcement.Endpoint) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.CABundle)
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Time: w.now},
		DialContext:       (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Post(r.url+e.PathPrefix+enforcement.PathEnforce, "application/json", http.NoBody)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := k8s.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: certs.InstallationSecret}, secret); err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func (w *world) installation() *certs.Installation {
	w.t.Helper()
	_, installation, err := certs.ReadInstallation(w.t.Context(), k8s, w.namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	return installation
}

func (w *world) update(change func(*corev1.Secret)) {
	w.t.Helper()
	secret := w.secret()
	change(secret)
	if err := k8s.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ask(value string) {
	w.t.Helper()
	w.update(func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, certs.AnnotationRotate, value) })
}

// until ticks until the Secret is in the phase, and gives the ticks that it took.
func (w *world) until(phase certs.Phase) int {
	w.t.Helper()
	for n := range 100 {
		if w.installation().Phase() == phase {
			return n
		}
		w.tick()
	}
	w.t.Fatalf("phase %s is not reached", phase)
	return 0
}

// rotate is a whole rotation.
func (w *world) rotate() {
	w.t.Helper()
	w.until(certs.PhaseDistributing)
	w.until(certs.PhaseOverlapping)
	w.until(certs.PhaseSteady)
	w.tick()
}

// event gives the next one, or "" when there is none.
func (w *world) event() string {
	select {
	case event := <-w.recorder.Events:
		return event
	default:
		return ""
	}
}
