package enforcement

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// tokenSeconds is the shortest life that the API server gives a token.
const tokenSeconds = 600

// authenticated are clients with the canary's token, one for each API server. Those of servers that are gone are dropped.
func (c *Canary) authenticated(ctx context.Context) (map[string]typedcorev1.CoreV1Interface, error) {
	configured, err := hostPort(c.identity.Host)
	if err != nil {
		return nil, err
	}
	addresses := []string{configured}
	if c.Servers != nil {
		found, err := c.Servers.Addresses(ctx)
		if err != nil {
			return nil, fmt.Errorf("addresses of the API servers: %w", err)
		}
		addresses = append(addresses, found...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.authenticate(ctx); err != nil {
		return nil, err
	}
	maps.DeleteFunc(c.clients, func(address string, _ typedcorev1.CoreV1Interface) bool { return !slices.Contains(addresses, address) })
	for _, address := range addresses {
		if c.clients[address] == nil {
			client, err := typedcorev1.NewForConfig(c.at(address, configured))
			if err != nil {
				return nil, fmt.Errorf("client of the canary for %s: %w", address, err)
			}
			c.clients[address] = client
		}
	}
	return maps.Clone(c.clients), nil
}

// authenticate gets a token, which is used for half of its life.
func (c *Canary) authenticate(ctx context.Context) error {
	now := time.Now()
	if c.token != "" && now.Before(c.renew) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	answer, err := c.manager.ServiceAccounts(canaryAccount.Namespace).CreateToken(ctx, canaryAccount.Name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token of ServiceAccount %s/%s: %w", canaryAccount.Namespace, canaryAccount.Name, err)
	}
	c.token, c.renew = answer.Status.Token, now.Add(answer.Status.ExpirationTimestamp.Sub(now)/2)
	c.clients = map[string]typedcorev1.CoreV1Interface{}
	return nil
}

// at is the way to one API server. Its certificate must be for the configured name: every API server of a cluster serves
// one for the name that its clients know, and not all serve one for their own address.
func (c *Canary) at(address, configured string) *rest.Config {
	cfg := rest.CopyConfig(c.identity)
	cfg.BearerToken = c.token
	if address == configured {
		return cfg
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(configured)
	}
	cfg.Host, cfg.Proxy = "https://"+address, nil
	return cfg
}

// forget drops a token that an API server does not know any more, for example because the ServiceAccount was made anew.
func (c *Canary) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = ""
}

// hostPort is the address of the host of a client's configuration.
func hostPort(host string) (string, error) {
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		if u, err = url.Parse("https://" + host); err != nil {
			return "", fmt.Errorf("host of the API server: %w", err)
		}
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), map[bool]string{true: "80", false: "443"}[u.Scheme == "http"]), nil
	}
	return u.Host, nil
}
