package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"
)

// Where config/ puts the manager.
const (
	SystemNamespace       = "stepbeyond-system"
	ManagerServiceAccount = "stepbeyond-manager"
)

// ManagerOptions choose how the manager runs.
type ManagerOptions struct {
	Build Build
	// Name distinguishes replicas in one environment. Omitted: manager.
	Name string
	// Args are further flags of the manager; a repeated flag wins over the one that the environment sets.
	Args []string
	// AnyServer does not verify the API server's certificate, which is as old as the environment: a manager whose clock is
	// behind would not trust it yet.
	AnyServer bool
	// Env are variables of the process beside those of the caller, each NAME=value.
	Env []string
}

// Manager is the manager as a process of its own, outside the cluster. It authenticates as its ServiceAccount, so it
// has the RBAC that config/ gives it and no more.
type Manager struct {
	env       *Env
	name      string
	binary    string
	args      []string
	variables []string
	log       string

	webhook              string
	metricsURL, readyURL string
	process              *process // nil before the first Start
}

// NewManager builds the manager and gives it a token and ports. Its namespace and ServiceAccount must exist. The same
// Manager can be started again after Kill or Stop, and then serves on the same ports.
func (e *Env) NewManager(ctx context.Context, opts ManagerOptions) (*Manager, error) {
	name := cmp.Or(opts.Name, "manager")
	e.progress("build the manager")
	binary, err := e.buildManager(ctx, opts.Build)
	if err != nil {
		return nil, err
	}
	token, err := e.ServiceAccountToken(ctx, SystemNamespace, ManagerServiceAccount, "")
	if err != nil {
		return nil, err
	}
	cfg := e.Token(token)
	if opts.AnyServer {
		cfg.Insecure, cfg.CAData = true, nil
	}
	kubeconfig, err := e.Kubeconfig(name, cfg, SystemNamespace)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	webhook, metrics, probes := address(ports[0]), address(ports[1]), address(ports[2])
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--webhook-bind-address=" + webhook,
		"--webhook-url=https://" + webhook,
		"--control-plane-directory=" + e.ControlPlaneDir(),
		"--metrics-bind-address=" + metrics,
		"--health-probe-bind-address=" + probes,
		"--leader-elect=false",
		"--shutdown-delay=0s", // tests that do not look at it need not wait for it
	}
	return &Manager{
		env: e, name: name, binary: binary, args: append(args, opts.Args...), variables: opts.Env, log: e.path("logs", name+".log"),
		webhook: webhook, metricsURL: "http://" + metrics + "/metrics", readyURL: "http://" + probes + "/readyz",
	}, nil
}

// Start starts the process and does not wait for it to be ready. It is an error while the process runs.
func (m *Manager) Start() error {
	if m.process != nil {
		select {
		case <-m.process.done:
		default:
			return errors.New("the manager runs already")
		}
	}
	p, err := m.env.start(m.name, m.log, m.variables, m.binary, m.args...)
	if err != nil {
		return err
	}
	m.process = p
	return nil
}

// WaitReady returns when /readyz is good. The error of a manager that ends or takes longer than timeout carries the
// end of its log.
func (m *Manager) WaitReady(ctx context.Context, timeout time.Duration) error {
	if m.process == nil {
		return errNotStarted
	}
	return m.process.await(ctx, timeout, func(ctx context.Context) error { return get(ctx, m.readyURL, nil) })
}

var errNotStarted = errors.New("the manager was not started")

// Kill ends the process with SIGKILL, as a crash would, and waits for its end.
func (m *Manager) Kill() error {
	if m.process == nil {
		return errNotStarted
	}
	return m.process.kill()
}

// Stop ends the process with SIGTERM and waits for its end.
func (m *Manager) Stop() error {
	if m.process == nil {
		return errNotStarted
	}
	return m.process.stop()
}

// Signal sends a signal to the process and does not wait: SIGSTOP makes it answer nothing, SIGCONT lets it go on.
func (m *Manager) Signal(signal syscall.Signal) error {
	if m.process == nil {
		return errNotStarted
	}
	if err := m.process.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal %s: %w", m.name, err)
	}
	return nil
}

// Running tells whether the process that was started last has not ended.
func (m *Manager) Running() bool {
	if m.process == nil {
		return false
	}
	select {
	case <-m.process.done:
		return false
	default:
		return true
	}
}

// Wait waits for the end of the process that was started last, and says how it ended; nil for status 0.
func (m *Manager) Wait() error {
	if m.process == nil {
		return errNotStarted
	}
	<-m.process.done
	return m.process.err
}

// WebhookAddress is the host:port that the webhook server listens on, for a Balancer.
func (m *Manager) WebhookAddress() string { return m.webhook }

// Logs is the file that holds the output of every start.
func (m *Manager) Logs() string { return m.log }

// get answers an error unless the status is 200; read, when not nil, gets the body.
func get(ctx context.Context, url string, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	if read == nil {
		return nil
	}
	return read(response)
}

// requestTimeout bounds one probe of the manager.
const requestTimeout = 5 * time.Second
