package notify

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

// errAddress is in the error of every connection that the guard refuses.
var errAddress = errors.New("is not on the public Internet and not in allowedNetworks")

// guard lets connections go to the public Internet and to listed networks only, so that a URL, or the name in it, is no
// way into the cluster, the host, or the cloud's metadata service.
type guard struct {
	allowed []netip.Prefix
	// api is the address of the API server as pods see it; invalid outside of a cluster.
	api netip.Addr
}

// newGuard takes CIDRs that the configuration has validated; one that is none allows nothing.
func newGuard(networks []string) guard {
	var g guard
	for _, text := range networks {
		if network, err := netip.ParsePrefix(text); err == nil {
			g.allowed = append(g.allowed, network)
		}
	}
	g.api, _ = netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	return g
}

// public6 is what of IPv6 is given out on the Internet at all (RFC 4291, section 2.4, and IANA's registry).
var public6 = netip.MustParsePrefix("2000::/3")

// special are networks that look public and are not: what IANA's registries of special-purpose addresses (RFC 6890) give to
// hosts, links, private and shared networks, documentation, measuring and multicast, and what carries an IPv4 address inside.
var special = parse(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

func parse(networks ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(networks))
	for _, network := range networks {
		parsed = append(parsed, netip.MustParsePrefix(network))
	}
	return parsed
}

// admits tells whether an address may be connected to.
func (g guard) admits(address netip.Addr) bool {
	address = address.Unmap() // ::ffff:127.0.0.1 is 127.0.0.1
	inside := func(network netip.Prefix) bool { return network.Contains(address.WithZone("")) }
	switch {
	case slices.ContainsFunc(g.allowed, inside):
		return true
	case address == g.api, slices.ContainsFunc(special, inside):
		return false
	default:
		return address.Is4() || inside(public6)
	}
}

// control runs after a name was resolved and before its address is connected to, for each address that is tried: a name
// that resolves to something else the second time gains nothing.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address: %w", address, err)
	}
	if !g.admits(at.Addr()) {
		return fmt.Errorf("%s %w", at.Addr(), errAddress)
	}
	return nil
}

// connectWithin bounds resolving the name and connecting.
const connectWithin = 5 * time.Second

func (g guard) dialer() *net.Dialer { return &net.Dialer{Timeout: connectWithin, Control: g.control} }
