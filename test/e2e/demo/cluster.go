package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Where manifests/ puts the agent.
const (
	namespace    = "checkout"
	agentAccount = "agent"
	agentLabels  = "app=fix-latency"
	agentUser    = "system:serviceaccount:" + namespace + ":" + agentAccount
)

// people are the users with a client certificate, and their groups.
var people = map[who]struct {
	name   string
	groups []string
}{
	platform:  {"petra@acme.example", []string{"acme:platform"}},
	approver:  {"carla@acme.example", nil},
	bystander: {"ben@acme.example", nil},
}

// cluster is the running control plane with the manager and the kubeconfigs of the users.
type cluster struct {
	env         *env.Env
	manager     *env.Manager
	admin       kubernetes.Interface
	folder      string // of the demo, where command lines run
	kubectl     string // folder of the real kubectl
	kubeconfigs map[who]string
}

// readyTimeout bounds the start of the manager.
const readyTimeout = time.Minute

// startCluster starts everything but the agent, which has no pod yet. config/ is applied whole but for what runs the
// manager inside a cluster: here it is a process beside it, with the same ServiceAccount.
func startCluster(ctx context.Context, opts options) (_ *cluster, err error) {
	e, err := env.Start(ctx, env.Options{WithoutAuthorizer: true, ControllerManager: true, Audit: true, Progress: opts.progress})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = e.Stop()
		}
	}()
	c := &cluster{env: e, kubeconfigs: map[who]string{}}
	if err := c.locate(); err != nil {
		return nil, err
	}
	if c.admin, err = kubernetes.NewForConfig(e.Admin()); err != nil {
		return nil, fmt.Errorf("client of the administrator: %w", err)
	}
	opts.progress("apply config/default")
	if err := e.ApplyKustomization(ctx, "config/default", "Deployment", "Service", "PodDisruptionBudget"); err != nil {
		return nil, err
	}
	objects, err := env.Read(filepath.Join(c.folder, "manifests", "people.yaml"))
	if err != nil {
		return nil, err
	}
	if err := e.Apply(ctx, objects...); err != nil {
		return nil, err
	}
	for who, person := range people {
		cfg, err := e.User(person.name, person.groups...)
		if err != nil {
			return nil, err
		}
		if err := c.addUser(who, cfg); err != nil {
			return nil, err
		}
	}
	return c, c.startManager(ctx, opts)
}

func (c *cluster) locate() error {
	root, err := env.RepositoryRoot()
	if err != nil {
		return err
	}
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		return err
	}
	c.folder, c.kubectl = filepath.Join(root, "test", "e2e", "demo"), filepath.Dir(kubectl)
	return nil
}

func (c *cluster) addUser(name who, cfg *rest.Config) error {
	path, err := c.env.Kubeconfig(string(name), cfg, namespace)
	if err != nil {
		return err
	}
	c.kubeconfigs[name] = path
	return nil
}

func (c *cluster) startManager(ctx context.Context, opts options) (err error) {
	build := env.Build{}
	if opts.mutation == mutateCAS {
		build.Tags = []string{"mutate_cas"}
	}
	if c.manager == nil {
		if c.manager, err = c.env.NewManager(ctx, env.ManagerOptions{Build: build}); err != nil {
			return err
		}
	}
	opts.progress("start the manager")
	if err := c.manager.Start(); err != nil {
		return err
	}
	return c.manager.WaitReady(ctx, readyTimeout)
}

// giveAgentToken waits for the pod of the agent's Deployment and gets a token bound to it, as the kubelet would.
func (c *cluster) giveAgentToken(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	pods, err := c.admin.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: agentLabels})
	if err != nil {
		return fmt.Errorf("pod of the agent: %w", err)
	}
	defer pods.Stop()
	first, ok := <-pods.ResultChan()
	if !ok {
		return fmt.Errorf("pod of the agent: there is none: %w", context.Cause(ctx))
	}
	pod, ok := first.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("pod of the agent: %w", apierrors.FromObject(first.Object))
	}
	token, err := c.env.ServiceAccountToken(ctx, namespace, agentAccount, pod.Name)
	if err != nil {
		return err
	}
	return c.addUser(agent, c.env.Token(token))
}

// username is how the API server knows a user.
func username(name who) string {
	if name == agent {
		return agentUser
	}
	return people[name].name
}

// shell runs a command line as a user, with the variables of the story, and returns both output streams.
func (c *cluster) shell(ctx context.Context, name who, line string, variables map[string]string) (string, error) {
	kubeconfig, ok := c.kubeconfigs[name]
	if !ok {
		return "", fmt.Errorf("%s has no kubeconfig yet", name)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir = c.folder
	cmd.Env = append(os.Environ(),
		"PATH="+c.kubectl+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+kubeconfig,
		// The discovery cache is keyed by address, and another control plane had this one before.
		"KUBECACHEDIR="+filepath.Join(c.env.Dir(), "kubectl-cache", string(name)),
	)
	for key, value := range variables {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// printExports tells how to go on by hand.
func (c *cluster) printExports(out io.Writer) {
	fmt.Fprintf(out, "\nexport PATH=%s:$PATH\n", c.kubectl)
	for _, name := range []who{platform, agent, approver, bystander} {
		if path, ok := c.kubeconfigs[name]; ok {
			fmt.Fprintf(out, "export KUBECONFIG=%s   # %s, %s\n", path, name, username(name))
		}
	}
	fmt.Fprintf(out, "# logs: %s\n", filepath.Dir(c.manager.Logs()))
}
