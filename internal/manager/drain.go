package manager

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

// drain lets a replica that was told to end answer until API servers have gone elsewhere. Their connections stay open for
// many reviews, and closing one under a review refuses a write; so each answer asks for its connection to be closed, and the
// next review comes over a new one, to a replica that is ready.
type drain struct{ ending atomic.Bool }

// delayed gives a context that ends delay after ctx. From the end of ctx on the replica is not ready and asks for
// connections to be closed. The caller calls stop when the replica has ended.
func (d *drain) delayed(ctx context.Context, delay time.Duration) (_ context.Context, stop context.CancelFunc) {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		d.ending.Store(true)
		select {
		case <-time.After(delay):
			end()
		case <-serving.Done():
		}
	})
	return serving, func() {
		unwatch()
		end()
	}
}

// handler has each answer of an ending replica close its connection.
func (d *drain) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

var errEnding = errors.New("the replica is ending")

// ready is a readiness check: Services send nothing new to a replica that is ending.
func (d *drain) ready(*http.Request) error {
	if d.ending.Load() {
		return errEnding
	}
	return nil
}
