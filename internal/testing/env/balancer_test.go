package env_test

import (
	"io"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// backend answers each connection with its name, and then with what it reads.
func backend(t *testing.T, name string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := io.WriteString(conn, name); err == nil {
					_, _ = io.Copy(conn, conn)
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// answer is who answers a new connection; empty when nobody does.
func answer(t *testing.T, b *env.Balancer) (string, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	name := make([]byte, 1)
	if _, err := io.ReadFull(conn, name); err != nil {
		return "", conn
	}
	return string(name), conn
}

func TestABalancerTakesTheNextBackendThatAnswers(t *testing.T) {
	a, b := backend(t, "a"), backend(t, "b")
	balancer, err := env.StartBalancer(a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = balancer.Close() })
	balancer.Add(b.Addr().String())
	var got []string
	var last net.Conn
	next := func() {
		name, conn := answer(t, balancer)
		got, last = append(got, name), conn
	}
	for range 4 {
		next()
	}
	if _, err := io.WriteString(last, "echo"); err != nil {
		t.Fatal(err)
	}
	echo := make([]byte, 4)
	if _, err := io.ReadFull(last, echo); err != nil || string(echo) != "echo" {
		t.Errorf("echo %q, %v", echo, err)
	}
	_ = a.Close()
	next()
	next()
	_ = b.Close()
	next()
	if diff := cmp.Diff([]string{"a", "b", "a", "b", "b", "b", ""}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if err := balancer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(last, echo); err == nil {
		t.Error("a connection outlives the balancer")
	}
}

func TestABackendThatIsTakenAwayKeepsItsConnections(t *testing.T) {
	a, b := backend(t, "a"), backend(t, "b")
	balancer, err := env.StartBalancer(a.Addr().String(), b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = balancer.Close() })
	name, old := answer(t, balancer)
	if name != "a" {
		t.Fatalf("the first answer is %q", name)
	}
	balancer.Remove(a.Addr().String())
	for range 3 {
		if name, _ := answer(t, balancer); name != "b" {
			t.Errorf("a new connection is answered by %q, want b", name)
		}
	}
	echo := make([]byte, 4)
	if _, err := io.WriteString(old, "echo"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(old, echo); err != nil || string(echo) != "echo" {
		t.Errorf("echo %q over the connection from before, %v", echo, err)
	}
}
