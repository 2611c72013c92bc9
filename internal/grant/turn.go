package grant

import (
	"context"
	"fmt"
	"sync"
)

// turns lets one request of a session at a time do something. Opening questions: so that a session that asks in a loop
// cannot open more than it may while nobody has counted yet; between replicas [Protocol.makeRoom] sees to it. Using wider
// approvals: so that few tries are in vain; that each use is taken once the grant's resourceVersion sees to. The zero value
// is ready.
type turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{} // closed when the turn is over
}

// take waits for the turn of a session, as long as ctx lasts. done ends the turn.
func (t *turns) take(ctx context.Context, session string) (done func(), err error) {
	for {
		t.mu.Lock()
		other := t.taken[session]
		if other == nil {
			if t.taken == nil {
				t.taken = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.taken[session] = mine
			t.mu.Unlock()
			return func() { t.end(session, mine) }, nil
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another request of the session: %w", context.Cause(ctx))
		}
	}
}

func (t *turns) end(session string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, session)
	close(mine)
}
