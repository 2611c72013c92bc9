// Package manager puts the parts together: it is the only one that knows all of them.
package manager

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/internal/certs"
)

// Options of the manager process.
type Options struct {
	// WebhookAddress is where the webhook server listens, host:port; an empty host is every interface.
	WebhookAddress string
	// WebhookURL is https://host:port under which the API server reaches the webhook server. Empty: through the Service
	// stepbeyond-webhook of the system namespace.
	WebhookURL string
	// AuthorizationURL is https://host:port under which the API servers reach the webhook server for authorization, where
	// they can call no Service: the Service's cluster IP, for example. Empty: WebhookURL. Without both there is no
	// authorization webhook.
	AuthorizationURL string
	// ControlPlaneDirectory is where the files of the Secret stepbeyond-control-plane lie on the API servers' hosts.
	ControlPlaneDirectory string
	// AuthorizationClientCertificate and AuthorizationClientKey are files on the API servers' hosts with the certificate that
	// the authorizer shows the webhook. Both or none; with ClientCAFile and an authorization webhook both are needed.
	AuthorizationClientCertificate, AuthorizationClientKey string
	// MetricsAddress serves Prometheus metrics over HTTP; "0" serves none.
	MetricsAddress string
	// HealthAddress serves /healthz and /readyz.
	HealthAddress string
	// ShutdownDelay is how long a replica that was told to end goes on answering while it is not ready, so that API servers
	// go elsewhere. It adds to the time that the answers under way may take.
	ShutdownDelay time.Duration
	// Timing of certificates and their rotation; DefaultTiming for production.
	Timing certs.Timing
	// ClientCAFile holds PEM certificates of authorities; who calls the webhook must then show a certificate of one of them.
	// Omitted, nobody is asked for one: the secret path alone tells API servers from others.
	ClientCAFile string
	// ClientNames are the common names or DNS names that such a certificate may be for. Omitted, all that the authorities
	// sign are good.
	ClientNames []string
	// ConfigFile is the ManagerConfig; empty for none.
	ConfigFile string
	// SecretsDirectory is where the Secrets that ConfigFile names are mounted, each in a folder of its name.
	SecretsDirectory string
	// LeaderElection runs controllers on one replica only. Webhooks run on every replica.
	LeaderElection bool
}

// Bind adds the options to a flag set.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.StringVar(&o.WebhookAddress, "webhook-bind-address", ":9443", "host:port that the webhook server listens on")
	flags.StringVar(&o.WebhookURL, "webhook-url", "", "https://host:port under which the API server reaches the webhook server; empty for the Service stepbeyond-webhook")
	flags.StringVar(&o.AuthorizationURL, "authorization-url", "", "https://host:port under which API servers reach the webhook server for authorization, which can call no Service; empty for --webhook-url")
	flags.StringVar(&o.ControlPlaneDirectory, "control-plane-directory", "/etc/kubernetes/stepbeyond", "where the files of the Secret stepbeyond-control-plane lie on the hosts of the API servers")
	flags.StringVar(&o.AuthorizationClientCertificate, "authorization-client-certificate", "", "file on the hosts of the API servers with the client certificate that their authorizer shows the webhook")
	flags.StringVar(&o.AuthorizationClientKey, "authorization-client-key", "", "file on the hosts of the API servers with the key of that certificate")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "host:port that serves metrics; 0 for none")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "host:port that serves /healthz and /readyz")
	flags.DurationVar(&o.ShutdownDelay, "shutdown-delay", 5*time.Second, "how long a replica that was told to end goes on answering, so that API servers go elsewhere")
	o.Timing = certs.DefaultTiming()
	o.Timing.Bind(flags)
	flags.StringVar(&o.ClientCAFile, "client-ca-file", "", "PEM certificates of the authorities that sign the API servers' client certificates for the webhook; empty asks for none")
	flags.Func("client-names", "common names or DNS names of those client certificates, separated by commas; empty for all", func(list string) error {
		o.ClientNames = strings.Split(list, ",")
		if slices.Contains(o.ClientNames, "") {
			return errEmptyName
		}
		return nil
	})
	flags.StringVar(&o.ConfigFile, "config", "", "file with the ManagerConfig: who is told of questions; empty for nobody")
	flags.StringVar(&o.SecretsDirectory, "secrets-directory", "/etc/stepbeyond/secrets", "where the Secrets that the ManagerConfig names are mounted, each in a folder of its name")
	flags.BoolVar(&o.LeaderElection, "leader-elect", false, "run controllers on one replica only")
}

func (o *Options) validate() error {
	if o.ShutdownDelay < 0 {
		return fmt.Errorf("shutdown-delay: %s is negative", o.ShutdownDelay)
	}
	return nil
}

var errEmptyName = errors.New("a name is empty")

// webhookListener splits WebhookAddress.
func (o *Options) webhookListener() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil {
		return "", 0, fmt.Errorf("webhook-bind-address: %w", err)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("webhook-bind-address: port %q is not between 1 and 65535", text)
	}
	return host, port, nil
}

var errWebhookURL = errors.New("is not https://host:port")

// webhookHosts are the names that the serving certificate is for.
func (o *Options) webhookHosts() ([]string, error) {
	if o.WebhookURL == "" {
		return []string{
			serviceName + "." + systemNamespace + ".svc",
			serviceName + "." + systemNamespace + ".svc.cluster.local",
		}, nil
	}
	if !validURL(o.WebhookURL) {
		return nil, fmt.Errorf("webhook-url: %q %w", o.WebhookURL, errWebhookURL)
	}
	u, _ := url.Parse(o.WebhookURL)
	return []string{u.Hostname()}, nil
}

func validURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path == ""
}
