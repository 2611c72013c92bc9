package rotation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// Serving is what a replica serves at one moment. It is immutable.
type Serving struct {
	Installation *certs.Installation
	// Leaf is of the current authority.
	Leaf *tls.Certificate
}

// Settings of a Keeper.
type Settings struct {
	// Live reads past any cache.
	Live client.Reader
	// Namespace of the Secret.
	Namespace string
	// Hosts are names and IP addresses that the leaf is for.
	Hosts  []string
	Timing certs.Timing
	// Endpoint is where the API server finds the webhook; path and bundle are filled in.
	Endpoint enforcement.Endpoint
	// Now is the clock.
	Now func() time.Time
}

// Keeper holds what the replica serves and keeps it up to date. Its methods may be called concurrently.
type Keeper struct {
	settings Settings
	current  atomic.Pointer[Serving]

	mu        sync.Mutex // of changes
	problem   error
	listeners []chan struct{}
}

// NewKeeper serves the installation with a new leaf.
func NewKeeper(settings Settings, installation *certs.Installation) (*Keeper, error) {
	k := &Keeper{settings: settings}
	leaf, err := k.sign(installation)
	if err != nil {
		return nil, err
	}
	k.current.Store(&Serving{Installation: installation, Leaf: leaf})
	return k, nil
}

func (k *Keeper) sign(installation *certs.Installation) (*tls.Certificate, error) {
	leaf, err := installation.Current.Authority.Leaf(k.settings.Now(), k.settings.Timing.LeafLifetime, k.settings.Hosts...)
	if err != nil {
		return nil, fmt.Errorf("make the serving certificate: %w", err)
	}
	return leaf, nil
}

// Current returns what is served.
func (k *Keeper) Current() *Serving { return k.current.Load() }

// GetCertificate is that of a tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.Current().Leaf, nil
}

// Problem is why the Secret could not be read or used last; nil when it was. What was served before is still served.
func (k *Keeper) Problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// Changed returns a channel that receives when the Secret says something new. A slow reader misses repetitions, never the
// last.
func (k *Keeper) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	listener := make(chan struct{}, 1)
	k.listeners = append(k.listeners, listener)
	return listener
}

// Endpoint is what the API server has to call and to trust. It reads the Secret, so that a leader that has not looked for
// long writes nothing old; an unusable Secret changes nothing.
func (k *Keeper) Endpoint(ctx context.Context) (enforcement.Endpoint, error) {
	if err := k.Refresh(ctx); err != nil && !unusable(err) {
		return enforcement.Endpoint{}, err
	}
	return k.endpointOf(k.Current().Installation), nil
}

func (k *Keeper) endpointOf(installation *certs.Installation) enforcement.Endpoint {
	endpoint := k.settings.Endpoint
	endpoint.PathPrefix, endpoint.CABundle = installation.Current.PathPrefix, installation.Bundle()
	return endpoint
}

// unusable is true for a Secret that was read and says nothing usable, or that is gone.
func unusable(err error) bool { return errors.Is(err, certs.ErrInvalid) || apierrors.IsNotFound(err) }

// Refresh reads the Secret and serves what it says. After an error everything is served as before.
func (k *Keeper) Refresh(ctx context.Context) error {
	_, installation, err := certs.ReadInstallation(ctx, k.settings.Live, k.settings.Namespace)
	if err == nil {
		return k.adopt(installation)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = err
	return err
}

// adopt serves the installation from now on, unless it does not follow what is served.
func (k *Keeper) adopt(installation *certs.Installation) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.Current()
	if k.problem = follows(last.Installation, installation); k.problem != nil {
		return k.problem
	}
	if same(last.Installation, installation) {
		return nil
	}
	serving := &Serving{Installation: installation, Leaf: last.Leaf}
	if last.Installation.Current.ID() != installation.Current.ID() {
		if serving.Leaf, k.problem = k.sign(installation); k.problem != nil {
			return k.problem
		}
	}
	k.current.Store(serving)
	for _, listener := range k.listeners {
		select {
		case listener <- struct{}{}:
		default:
		}
	}
	return nil
}

var (
	errDigestKey = errors.New("field digest.key: is not the one that this process started with; grants and stamps made with that one are worthless under another")
	errReplaced  = errors.New("field ca.crt: the authority or the path was replaced without a rotation; restart all replicas to serve it")
)

// follows refuses what no rotation writes: an edited or restored Secret. A replica that slept through a whole rotation is
// behind, and takes what it finds.
func follows(last, installation *certs.Installation) error {
	switch {
	case last.DigestKey != installation.DigestKey:
		return fmt.Errorf("%w: %w", certs.ErrInvalid, errDigestKey)
	case installation.Rotations < last.Rotations,
		installation.Rotations == last.Rotations && installation.Current.ID() != last.Current.ID():
		return fmt.Errorf("%w: %w", certs.ErrInvalid, errReplaced)
	default:
		return nil
	}
}

func same(a, b *certs.Installation) bool {
	one, other := a.Generations(), b.Generations()
	if a.Rotations != b.Rotations || a.Phase() != b.Phase() || len(one) != len(other) {
		return false
	}
	for i := range one {
		if one[i].ID() != other[i].ID() {
			return false
		}
	}
	return true
}

// Renew signs a new leaf when two thirds of the last one's life are over, unless the authority ends before a new one would
// live longer.
func (k *Keeper) Renew() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, now := k.Current(), k.settings.Now()
	end := last.Leaf.Leaf.NotAfter
	if now.Before(end.Add(-k.settings.Timing.LeafLifetime/3)) || !end.Before(last.Installation.Current.Authority.NotAfter()) {
		return nil
	}
	leaf, err := k.sign(last.Installation)
	if err != nil {
		return err
	}
	k.current.Store(&Serving{Installation: last.Installation, Leaf: leaf})
	return nil
}
