package env

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// freePorts returns n different TCP ports of the loopback address that nobody listens on. They lie below the range from
// which systems take the local ports of outgoing connections, so that a killed process finds its port free again.
func freePorts(n int) ([]int, error) {
	const first, count = 20000, 10000
	ports := make([]int, 0, n)
	for _, offset := range rand.Perm(count) {
		l, err := net.Listen("tcp", address(first+offset))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are found, so that none is found twice
		if ports = append(ports, first+offset); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("%d free ports from %d to %d: found %d", n, first, first+count-1, len(ports))
}
