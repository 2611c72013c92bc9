// Package integration_test proves what holds only with everything in place: a real control plane, the manager as a
// process of its own with the race detector and the RBAC of config/, and nothing faked.
//
// The tests share one control plane and one manager. Each has governed namespaces of its own, and a test that stops or
// starves the manager brings it back before it ends. With INTEGRATION_DIR set to a folder, logs and certificates of the
// run stay there.
package integration_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
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
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// homes are the governed namespaces and their profiles.
var homes = map[string]string{
	"unnoticed": "standard", "sessions": "standard", "unborn": "standard", "unreadable": "standard", "secrecy": "standard",
	"answers": "standard", "second-person": "two-people", "objects": "standard",
	"forms": "standard", "hasty": "hasty", "denied": "standard", "changing": "changing", "epochs": "standard", "narrow": "narrow",
	"strangers": "standard", "planners": "standard", "robots": "standard",
	"paths": "standard", "upgrades": "standard", "owners": "standard", "deputies": "standard", "escapes": "standard",
	"denials": "standard", "denials-narrow": "narrow", "denials-hasty": "hasty", "denials-changing": "standard",
	"lineage": "standard", "delegation": "standard", "launched": "standard", "confined": "standard",
	"dry": "standard", "effects": "standard", "stamps": "standard", "classes": "standard", "dead": "standard", "forbidden": "standard",
}

// The shared cluster, as TestMain made it.
var (
	plane   *env.Env
	manager *env.Manager
	scheme  = runtime.NewScheme()
	admin   *actor
	// people
	petra, carla, dora, ben *actor
	robot                   *actor // governed, and no ServiceAccount
	releaseBot, unlistedBot *actor
)

const readyTimeout = time.Minute

func TestMain(m *testing.M) {
	flag.Parse() // before testing.Verbose
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration:", err)
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
	plane, err = env.Start(ctx, env.Options{
		ControllerManager: true, Audit: true, Progress: progress(), Dir: os.Getenv("INTEGRATION_DIR"),
		WithoutAuthorizer: true, // what admission alone keeps from agents whom RBAC allows everything
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := settle(ctx); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, errors.Join(undisturbed(ctx), manager.Stop(), unraced())
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

// settle fills the cluster and starts the manager.
func settle(ctx context.Context) error {
	if err := plane.ApplyKustomization(ctx, "config/default", "Deployment", "Service", "PodDisruptionBudget"); err != nil {
		return err
	}
	objects, err := env.Read("test/integration/testdata/cluster.yaml", "test/integration/testdata/governance.yaml")
	if err != nil {
		return err
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
	if err := introduce(ctx); err != nil {
		return err
	}
	for _, profile := range profiles() {
		if err := admin.Create(ctx, profile); err != nil {
			return fmt.Errorf("profile %s: %w", profile.Name, err)
		}
	}
	if manager, err = plane.NewManager(ctx, env.ManagerOptions{Build: env.Build{Race: true}}); err != nil {
		return err
	}
	if err := manager.Start(); err != nil {
		return err
	}
	return manager.WaitReady(ctx, readyTimeout)
}

func homeObjects(namespace, profile string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile("testdata/home.yaml")
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	return env.Decode([]byte(strings.NewReplacer("NAMESPACE", namespace, "PROFILE", profile).Replace(string(text))))
}

// profiles differ in what the tests need.
func profiles() []*v1alpha1.AgentPolicy {
	profile := func(name string, change func(*v1alpha1.AgentPolicySpec)) *v1alpha1.AgentPolicy {
		p := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: name}}
		p.Spec.SessionTemplates = []v1alpha1.SessionTemplate{{
			Name: "agent", ServiceAccountName: "agent", Lifetime: v1alpha1.SessionLifetimeWorkload,
			User: v1alpha1.TemplateUser{Source: v1alpha1.UserSourceFixed, Name: doraName},
			Authority: v1alpha1.Authority{
				Stages:       []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StagePropose, v1alpha1.StageExecute},
				Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityReadContext, v1alpha1.CapabilityExecuteLocal},
			},
		}}
		change(&p.Spec)
		return p
	}
	return []*v1alpha1.AgentPolicy{
		profile("standard", func(s *v1alpha1.AgentPolicySpec) {
			s.Caps = &v1alpha1.Caps{MaxPendingGrantsPerSession: new(int32(100))}
		}),
		profile("changing", func(*v1alpha1.AgentPolicySpec) {}),
		profile("narrow", func(s *v1alpha1.AgentPolicySpec) {
			s.Caps = &v1alpha1.Caps{MaxPendingGrantsPerSession: new(int32(2))}
		}),
		// Questions, approvals and denials end within seconds.
		profile("hasty", func(s *v1alpha1.AgentPolicySpec) {
			s.Approvals = &v1alpha1.Approvals{DecideWithinSeconds: 5, UseWithinSeconds: 5, WarnBeforeExpirySeconds: 1, AskAgainAfterSeconds: 5}
		}),
		profile("two-people", func(s *v1alpha1.AgentPolicySpec) {
			s.Approvals = &v1alpha1.Approvals{
				SessionUser:  v1alpha1.SessionUserRefuse,
				Requirements: []v1alpha1.ApprovalRequirement{{Name: "two", Required: 2}},
			}
		}),
	}
}

const (
	petraName = "petra@acme.example"
	carlaName = "carla@acme.example"
	doraName  = "dora@acme.example" // the human behind every session
	benName   = "ben@acme.example"
	robotName = "robot@acme.example"
)

// introduce makes the clients of the administrator, of people and of ServiceAccounts outside the governed namespaces.
func introduce(ctx context.Context) (err error) {
	if admin, err = newActor("admin", plane.Admin()); err != nil {
		return err
	}
	for _, person := range []struct {
		actor  **actor
		name   string
		groups []string
	}{{&petra, petraName, []string{"acme:platform"}}, {&carla, carlaName, nil}, {&dora, doraName, nil}, {&ben, benName, nil}, {&robot, robotName, nil}} {
		cfg, err := plane.User(person.name, person.groups...)
		if err != nil {
			return err
		}
		if *person.actor, err = newActor(person.name, cfg); err != nil {
			return err
		}
	}
	for name, bot := range map[string]**actor{"release-bot": &releaseBot, "unlisted-bot": &unlistedBot} {
		if *bot, err = accountActor(ctx, "ci", name, ""); err != nil {
			return err
		}
	}
	return nil
}

// undisturbed looks at what the API server counted over the whole run: no match condition ever erred, for whoever
// wrote. The controllers of kube-controller-manager wrote all the time.
func undisturbed(ctx context.Context) error {
	failures, err := apiServerCounter(ctx, "apiserver_admission_match_condition_evaluation_errors_total", nil)
	if err != nil {
		return err
	}
	if failures > 0 {
		return fmt.Errorf("%v match conditions erred in the API server", failures)
	}
	return nil
}

// unraced looks for reports of the race detector in the manager's log.
func unraced() error {
	text, err := os.ReadFile(manager.Logs())
	if err != nil {
		return fmt.Errorf("log of the manager: %w", err)
	}
	if _, report, found := bytes.Cut(text, []byte("WARNING: DATA RACE")); found {
		return fmt.Errorf("the manager has a data race:%s", report[:min(len(report), 4096)])
	}
	return nil
}
