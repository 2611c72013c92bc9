package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startPlane runs etcd and kube-apiserver through envtest, which also issues the client certificates of users.
func (e *Env) startPlane(ctx context.Context, opts Options) error {
	plane := &envtest.Environment{ControlPlaneStartTimeout: startTimeout, ControlPlaneStopTimeout: stopTimeout}
	if err := e.configurePlane(plane, opts); err != nil {
		return err
	}
	e.plane = plane
	admin, err := plane.Start()
	if err != nil {
		return fmt.Errorf("start control plane: %w; end of apiserver.log:\n%s", err, tail(e.path("logs", "apiserver.log"), 4096))
	}
	if e.client, err = kubernetes.NewForConfig(admin); err != nil {
		return fmt.Errorf("client of the administrator: %w", err)
	}
	e.admin = admin
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	e.follow()
	// The port opens before the bootstrap roles exist; /readyz covers their post-start hook, /healthz does not wait for it.
	return poll(ctx, nil, func(ctx context.Context) error {
		return e.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (e *Env) configurePlane(plane *envtest.Environment, opts Options) error {
	api, etcd := plane.ControlPlane.GetAPIServer(), &envtest.Etcd{}
	plane.ControlPlane.Etcd = etcd
	api.CertDir, etcd.DataDir = e.path("apiserver"), e.path("etcd")
	for name, path := range map[string]*string{"kube-apiserver": &api.Path, "etcd": &etcd.Path} {
		binary, err := Asset(name)
		if err != nil {
			return err
		}
		*path = e.path("bin", name)
		if err := e.reaper.wrap(name, binary, *path); err != nil {
			return err
		}
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	api.SecureServing.Address, api.SecureServing.Port = loopback, strconv.Itoa(ports[0])
	etcd.URL = &url.URL{Scheme: "http", Host: address(ports[1])}
	for name, out := range map[string]*io.Writer{"apiserver.log": &api.Err, "etcd.log": &etcd.Err} {
		file, err := os.Create(e.path("logs", name))
		if err != nil {
			return fmt.Errorf("log: %w", err)
		}
		*out = file
	}
	if opts.ControllerManager {
		// envtest switches the ServiceAccount plugin off, because without controllers nobody makes default ServiceAccounts.
		api.Configure().Disable("disable-admission-plugins")
	}
	// It would publish an address of the machine in the Service kubernetes, and it listens on the loopback interface.
	api.Configure().Set("endpoint-reconciler-type", "none")
	if err := e.configureControlPlane(api, opts); err != nil {
		return err
	}
	extra := opts.APIServerArgs
	if opts.Audit {
		audit, err := e.auditArgs()
		if err != nil {
			return err
		}
		extra = append(audit, extra...)
	}
	return setFlags(api, extra)
}

func setFlags(api *envtest.APIServer, args []string) error {
	for _, arg := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok {
			return fmt.Errorf("API server flag %q: want --name=value", arg)
		}
		api.Configure().Set(name, value)
	}
	return nil
}

// startControllerManager runs kube-controller-manager with one ServiceAccount per controller, as a real cluster does,
// and waits until it has filled the aggregated role edit.
func (e *Env) startControllerManager(ctx context.Context) error {
	binary, err := Asset("kube-controller-manager")
	if err != nil {
		return err
	}
	user, err := e.User("system:kube-controller-manager")
	if err != nil {
		return err
	}
	kubeconfig, err := e.Kubeconfig("kube-controller-manager", user, "")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	root := e.path("apiserver", "root-ca.crt")
	if err := os.WriteFile(root, e.admin.CAData, 0o600); err != nil {
		return fmt.Errorf("root CA: %w", err)
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + e.path("apiserver", "sa-signer.key"),
		"--root-ca-file=" + root,
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(ports[0]), "--cert-dir=" + e.path("controller-manager"),
		"--leader-elect=false",
	}
	if err := os.WriteFile(e.path("bin", string(ControllerManager)+argumentsSuffix), []byte(strings.Join(args, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("flags of kube-controller-manager: %w", err)
	}
	p, err := e.start(string(ControllerManager), e.path("logs", "kube-controller-manager.log"), nil, binary, args...)
	if err != nil {
		return err
	}
	return p.await(ctx, startTimeout, func(ctx context.Context) error {
		role, err := e.client.RbacV1().ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("ClusterRole edit: %w", err)
		}
		if len(role.Rules) == 0 {
			return errors.New("ClusterRole edit: no rules are aggregated yet")
		}
		return nil
	})
}
