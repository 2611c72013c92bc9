package notify

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestOnlyThePublicInternetAndListedNetworksAreReached(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "52.10.0.1")
	for _, tt := range []struct {
		name     string
		networks []string
		address  string
		want     bool
	}{
		{"a public address", nil, "93.184.215.14", true},
		{"a public IPv6 address", nil, "2606:2800:21f:cb07:6820:80da:af6b:8b2c", true},
		{"loopback", nil, "127.0.0.1", false},
		{"the far end of loopback", nil, "127.255.255.254", false},
		{"loopback of IPv6", nil, "::1", false},
		{"loopback of IPv4 written as IPv6", nil, "::ffff:127.0.0.1", false},
		{"loopback of IPv4, compatible", nil, "::127.0.0.1", false},
		{"loopback behind NAT64", nil, "64:ff9b::7f00:1", false},
		{"a private address behind 6to4", nil, "2002:0a00:0001::1", false},
		{"Teredo", nil, "2001:0:4136:e378::1", false},
		{"no address", nil, "0.0.0.0", false},
		{"no IPv6 address", nil, "::", false},
		{"the metadata service of clouds", nil, "169.254.169.254", false},
		{"the metadata service by IPv6", nil, "fd00:ec2::254", false},
		{"link-local IPv6", nil, "fe80::1%eth0", false},
		{"private 10", nil, "10.96.0.10", false},
		{"private 172", nil, "172.31.255.1", false},
		{"beside private 172", nil, "172.32.0.1", true},
		{"private 192", nil, "192.168.1.1", false},
		{"carrier-grade NAT, which clusters use for pods", nil, "100.64.0.1", false},
		{"unique local IPv6", nil, "fd00:10:244::5", false},
		{"site-local IPv6", nil, "fec0::1", false},
		{"multicast", nil, "224.0.0.251", false},
		{"multicast IPv6", nil, "ff02::1", false},
		{"broadcast", nil, "255.255.255.255", false},
		{"benchmarking", nil, "198.19.0.1", false},
		{"the API server, at a public address", nil, "52.10.0.1", false},
		{"the API server, listed", []string{"52.10.0.0/24"}, "52.10.0.1", true},
		{"a listed private network", []string{"10.20.0.0/16"}, "10.20.3.4", true},
		{"beside a listed private network", []string{"10.20.0.0/16"}, "10.21.3.4", false},
		{"a listed network, written as IPv6", []string{"10.20.0.0/16"}, "::ffff:10.20.3.4", true},
		{"a listed IPv6 network", []string{"fd00:7::/32"}, "fd00:7::1", true},
		{"all of IPv4 is no IPv6", []string{"0.0.0.0/0"}, "::1", false},
		{"what is no network opens nothing", []string{"anything"}, "10.20.3.4", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newGuard(tt.networks).admits(netip.MustParseAddr(tt.address)); got != tt.want {
				t.Errorf("%s is admitted: %v, want %v", tt.address, got, tt.want)
			}
		})
	}
}

// nameServer answers every question for an IPv4 address with the next of a list, and the last one from then on.
func nameServer(t *testing.T, answers ...netip.Addr) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	var asked atomic.Int32
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			end := 12 + strings.IndexByte(string(query[12:n]), 0) + 5 // header, name, type, class
			reply := append([]byte{}, query[:end]...)
			binary.BigEndian.PutUint16(reply[2:], 0x8180)
			binary.BigEndian.PutUint16(reply[6:], 0)
			binary.BigEndian.PutUint16(reply[8:], 0)
			binary.BigEndian.PutUint16(reply[10:], 0)
			if binary.BigEndian.Uint16(reply[end-4:]) == 1 {
				address := answers[min(int(asked.Add(1)), len(answers))-1].As4()
				binary.BigEndian.PutUint16(reply[6:], 1)
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				reply = append(reply, address[:]...)
			}
			_, _ = server.WriteTo(reply, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// What counts is the address that is connected to: a name that was good when somebody looked is asked about again.
func TestANameThatLeadsElsewhereTheSecondTimeIsRefused(t *testing.T) {
	good, bad := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")
	listeners := map[netip.Addr]*atomic.Int32{good: {}, bad: {}}
	first, err := net.Listen("tcp", good.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	port := first.Addr().(*net.TCPAddr).AddrPort().Port()
	second, err := net.Listen("tcp", netip.AddrPortFrom(bad, port).String())
	if err != nil {
		t.Fatal(err)
	}
	for address, listener := range map[netip.Addr]net.Listener{good: first, bad: second} {
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				listeners[address].Add(1)
				c.Close()
			}
		}()
	}
	g := newGuard([]string{"127.0.0.2/32"})
	dialer := g.dialer()
	dialer.Resolver = nameServer(t, good, bad)
	name := "hooks.acme.example:" + first.Addr().String()[strings.LastIndexByte(first.Addr().String(), ':')+1:]
	c, err := dialer.DialContext(t.Context(), "tcp", name)
	if err != nil {
		t.Fatalf("the listed address: %v", err)
	}
	c.Close()
	if c, err = dialer.DialContext(t.Context(), "tcp", name); !errors.Is(err, errAddress) {
		if err == nil {
			c.Close()
		}
		t.Errorf("the same name at another address: %v, want %v", err, errAddress)
	}
	if n := listeners[bad].Load(); n != 0 {
		t.Errorf("%d connections to the address that is not listed", n)
	}
}
