// Package protocol_test proves that an approved operation has at most its one effect on a real control plane with two
// API servers and two replicas of the manager, whatever races, crashes, lags or lies.
//
// The replicas are built with the race detector and with fault points (internal/grant, build tag "faults"), and share
// one address behind a balancer. Effects are counted from the API server's watch. With PROTOCOL_DIR set to a folder,
// logs and certificates of the run stay there.
package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// homes are the governed namespaces and their profiles; each family of effects has one more of its own.
var homes = map[string]string{
	"raised": "standard", "suspended": "standard", "ended": "standard", "changing": "changing", "steady": "standard",
	"storm": "standard", "attacks": "standard", "outage": "standard", "flood": "narrow",
}

// narrowCap bounds the open questions of a session in the profile narrow.
const narrowCap = 5

// The shared cluster, as TestMain made it.
var (
	plane  *env.Env
	second *env.APIServer
	// replicas of the manager, and what spreads the reviews over them.
	replicas [2]*replica
	balancer *env.Balancer
	faults   string // folder of the orders

	scheme       = runtime.NewScheme()
	admin        *actor
	petra, carla *actor
	digestKey    kube.Key
)

const readyTimeout = time.Minute

func TestMain(m *testing.M) {
	flag.Parse() // before testing.Verbose
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		fmt.Fprintln(os.Stderr, "test/protocol:", err)
		os.Exit(1)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/protocol:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, fmt.Errorf("scheme: %w", err)
		}
	}
	log.SetLogger(logr.Discard()) // what the clients of the tests would say is in the answers
	if faults, err = os.MkdirTemp("", "stepbeyond-faults-"); err != nil {
		return 0, fmt.Errorf("folder of the faults: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(faults)) }()
	plane, err = env.Start(ctx, env.Options{
		ControllerManager: true, Audit: true, Progress: progress(), Dir: os.Getenv("PROTOCOL_DIR"),
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if second, err = plane.StartAPIServer(ctx, "second-apiserver"); err != nil {
		return 0, err
	}
	if err := settle(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, balancer.Close()) }()
	code = m.Run()
	unobserve()
	for _, r := range replicas {
		err = errors.Join(err, r.end(), unraced(r.Manager))
	}
	return code, err
}

// progress tells in verbose runs how long each step of the start took.
func progress() func(string) {
	start := time.Now()
	return func(step string) {
		if testing.Verbose() {
			fmt.Printf("%5.1fs %s\n", time.Since(start).Seconds(), step)
		}
	}
}

// settle fills the cluster and starts the replicas.
func settle(ctx context.Context) error {
	if err := plane.ApplyKustomization(ctx, "config/default", "Deployment", "Service", "PodDisruptionBudget"); err != nil {
		return err
	}
	objects, err := env.Read("test/protocol/testdata/cluster.yaml")
	if err != nil {
		return err
	}
	for _, f := range families {
		homes[f.home] = "standard"
	}
	for namespace, profile := range homes {
		home, err := homeObjects(namespace, profile)
		if err != nil {
			return err
		}
		objects = append(objects, home...)
	}
	if err := plane.Apply(ctx, objects...); err != nil {
		return err
	}
	if err := introduce(); err != nil {
		return err
	}
	for name, pending := range map[string]int32{"standard": 100, "changing": 100, "narrow": narrowCap} {
		if err := admin.Create(ctx, profile(name, pending)); err != nil {
			return fmt.Errorf("profile %s: %w", name, err)
		}
	}
	return startReplicas(ctx)
}

func startReplicas(ctx context.Context) (err error) {
	if balancer, err = env.StartBalancer(); err != nil {
		return err
	}
	for i := range replicas {
		manager, err := plane.NewManager(ctx, env.ManagerOptions{
			Build: env.Build{Race: true, Tags: []string{"faults"}}, Name: fmt.Sprintf("manager-%d", i+1),
			Args: []string{"--webhook-url=https://" + balancer.Address(), "--leader-elect=true"},
			Env:  []string{"FAULTS_DIR=" + faults},
		})
		if err != nil {
			return err
		}
		balancer.Add(manager.WebhookAddress())
		if replicas[i], err = keep(manager); err != nil {
			return err
		}
	}
	for _, r := range replicas {
		if err := r.WaitReady(ctx, readyTimeout); err != nil {
			return err
		}
	}
	installation, err := certs.LoadInstallation(ctx, admin, admin, env.SystemNamespace, time.Now(), time.Hour)
	if err != nil {
		return err
	}
	digestKey = installation.DigestKey
	return nil
}

func homeObjects(namespace, profile string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "home.yaml"))
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	return env.Decode([]byte(strings.NewReplacer("NAMESPACE", namespace, "PROFILE", profile).Replace(string(text))))
}

func profile(name string, pending int32) *v1alpha1.AgentPolicy {
	p := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: name}}
	p.Spec.SessionTemplates = []v1alpha1.SessionTemplate{{
		Name: "agent", ServiceAccountName: "agent", Lifetime: v1alpha1.SessionLifetimeWorkload,
		User: v1alpha1.TemplateUser{Source: v1alpha1.UserSourceFixed, Name: "dora@acme.example"},
		Authority: v1alpha1.Authority{
			Stages:       []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StagePropose, v1alpha1.StageExecute},
			Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityReadContext, v1alpha1.CapabilityExecuteLocal},
		},
	}}
	p.Spec.Caps = &v1alpha1.Caps{MaxPendingGrantsPerSession: &pending}
	return p
}

// introduce makes the clients of the administrator and of people.
func introduce() (err error) {
	if admin, err = newActor("admin", plane.Admin()); err != nil {
		return err
	}
	for _, person := range []struct {
		actor  **actor
		name   string
		groups []string
	}{{&petra, "petra@acme.example", []string{"acme:platform"}}, {&carla, "carla@acme.example", nil}} {
		cfg, err := plane.User(person.name, person.groups...)
		if err != nil {
			return err
		}
		if *person.actor, err = newActor(person.name, cfg); err != nil {
			return err
		}
	}
	return nil
}

// unraced looks for reports of the race detector in a replica's log.
func unraced(manager *env.Manager) error {
	text, err := os.ReadFile(manager.Logs())
	if err != nil {
		return fmt.Errorf("log of the manager: %w", err)
	}
	if _, report, found := bytes.Cut(text, []byte("WARNING: DATA RACE")); found {
		return fmt.Errorf("the manager has a data race:%s", report[:min(len(report), 4096)])
	}
	return nil
}
