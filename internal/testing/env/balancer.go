package env

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Balancer gives each new connection to the next backend in turn that answers, as a Service does for the replicas of the
// manager. It does not look into what it passes on.
type Balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends []string
	next     int
	open     map[net.Conn]bool
	closed   bool

	connections sync.WaitGroup
}

// StartBalancer listens on a free port of the loopback address. Without backends it refuses every connection.
func StartBalancer(backends ...string) (*Balancer, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address(ports[0]))
	if err != nil {
		return nil, fmt.Errorf("balancer: %w", err)
	}
	b := &Balancer{listener: listener, backends: backends, open: map[net.Conn]bool{}}
	b.connections.Go(b.accept)
	return b, nil
}

// Address is the host:port that the balancer listens on.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Add gives the balancer one more backend, host:port.
func (b *Balancer) Add(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = append(b.backends, backend)
}

// Remove takes a backend away. Connections to it stay, as a Service leaves those of a Pod that is no longer ready.
func (b *Balancer) Remove(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(slices.Clone(b.backends), func(other string) bool { return other == backend })
}

// Close cuts all connections, accepts no more, and waits until nothing of the balancer runs.
func (b *Balancer) Close() error {
	err := b.listener.Close()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.Cut()
	b.connections.Wait()
	return err
}

// Cut cuts all connections, so that the next requests open new ones.
func (b *Balancer) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		_ = conn.Close()
	}
}

func (b *Balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			b.connections.Go(func() { b.serve(conn) })
		}
	}
}

// serve passes bytes on in both directions until one side ends.
func (b *Balancer) serve(conn net.Conn) {
	defer conn.Close()
	backend, err := b.dial()
	if err != nil {
		return
	}
	defer backend.Close()
	b.remember(conn, backend)
	defer b.forget(conn, backend)
	var backwards sync.WaitGroup
	backwards.Go(func() { pass(conn, backend) })
	pass(backend, conn)
	backwards.Wait()
}

// pass copies until either side ends, and ends both.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// dial tries each backend once, beginning with the next in turn.
func (b *Balancer) dial() (net.Conn, error) {
	b.mu.Lock()
	backends, first := b.backends, b.next
	b.next++
	b.mu.Unlock()
	err := errors.New("no backend")
	for i := range backends {
		conn, dialErr := net.Dial("tcp", backends[(first+i)%len(backends)])
		if dialErr == nil {
			return conn, nil
		}
		err = dialErr
	}
	return nil, fmt.Errorf("balancer: %w", err)
}

func (b *Balancer) remember(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range conns {
		if b.closed {
			_ = conn.Close()
		}
		b.open[conn] = true
	}
}

func (b *Balancer) forget(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range conns {
		delete(b.open, conn)
	}
}
