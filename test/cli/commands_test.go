package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// parameters run the given scripts, with the administrator's kubeconfig.
func parameters(files ...string) testscript.Params {
	for i := range files {
		files[i] = filepath.Join("testdata", files[i]+".txtar")
	}
	return testscript.Params{
		Files: files, Setup: setup, RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: os.Getenv("UPDATE_GOLDEN") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"home": home, "person": person, "manager": manager, "eventually": eventually, "bystander": bystander, "gauge": gauge, "interrupted": interrupted, "meddled": meddled,
			"asks": asks, "capture": capture, "foreign": foreign, "masked": masked, "untold": untold, "logged": logged,
			"examples": examples,
		},
	}
}

// adminKubeconfig is written once, because scripts that run at the same time read it.
var adminKubeconfig = sync.OnceValues(func() (string, error) { return world.Env.Kubeconfig("admin", world.Env.Admin(), "") })

func setup(e *testscript.Env) error {
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		return err
	}
	admin, err := adminKubeconfig()
	if err != nil {
		return err
	}
	root, err := env.RepositoryRoot()
	if err != nil {
		return err
	}
	e.Setenv("PATH", filepath.Dir(kubectl)+string(os.PathListSeparator)+e.Getenv("PATH"))
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("KUBECONFIG", admin)
	e.Setenv("admin", admin)
	e.Setenv("repository", root)
	return nil
}

// home NAMESPACE [PROFILE] makes a governed namespace; $agent is its agent's kubeconfig.
func home(ts *testscript.TestScript, _ bool, args []string) {
	h, err := world.HomeUnder(context.Background(), args[0], append(args, cluster.Profile)[1])
	ts.Check(err)
	kubeconfig, err := world.Env.Kubeconfig("agent-"+args[0], h.Agent.Config, args[0])
	ts.Check(err)
	ts.Setenv("agent", kubeconfig)
}

// person NAME[/GROUP] CLUSTERROLE... makes a user with these roles everywhere; $NAME is the kubeconfig.
func person(ts *testscript.TestScript, _ bool, args []string) {
	var groups []string
	name, group, found := strings.Cut(args[0], "/")
	if args[0] = name; found {
		groups = append(groups, group)
	}
	config, err := world.Env.User(name, groups...)
	ts.Check(err)
	kubeconfig, err := world.Env.Kubeconfig(args[0], config, "")
	ts.Check(err)
	ts.Setenv(args[0], kubeconfig)
	for _, role := range args[1:] {
		ts.Check(client.IgnoreAlreadyExists(world.Admin.Create(context.Background(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: args[0] + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: args[0]}},
		})))
	}
}

// manager kill ends it as a crash does, manager start starts it again and waits until it is ready.
func manager(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "kill" {
		_ = world.Manager.Kill() // the error says that it was killed
		return
	}
	ts.Check(world.Manager.Start())
	ts.Check(world.Manager.WaitReady(context.Background(), waitAtMost))
}

// eventually PATTERN COMMAND... runs a command again until its output, stdout and stderr, matches and, without "!", it
// succeeds; with "!", until it fails.
func eventually(ts *testscript.TestScript, fails bool, args []string) {
	pattern := regexp.MustCompile(args[0])
	var last string
	for deadline := time.Now().Add(waitAtMost); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "HOME="+ts.Getenv("HOME"), "PATH="+ts.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		last = fmt.Sprintf("%v\n%s", err, output)
		if (err != nil) == fails && pattern.Match(output) {
			ts.Logf("%s", bytes.TrimSpace(output))
			return
		}
	}
	ts.Fatalf("%q never ended so: %s", args[1:], last)
}

// gauge NAME LEAST waits until a gauge of the manager has at least this value.
func gauge(ts *testscript.TestScript, _ bool, args []string) {
	least, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	var got float64
	for deadline := time.Now().Add(waitAtMost); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		got, err = world.Manager.Counter(context.Background(), args[0], nil)
		ts.Check(err)
		if got >= least {
			return
		}
	}
	ts.Fatalf("%s is %v, want at least %v", args[0], got, least)
}

// bystander NAMESPACE has somebody who is not governed write there, every 50 ms until the script ends; one refusal fails it.
func bystander(ts *testscript.TestScript, _ bool, args []string) {
	config, err := world.Env.User("bystander", "system:masters")
	ts.Check(err)
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	ts.Check(err)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: args[0], Name: "bystander"}}
	ts.Check(c.Create(context.Background(), object))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	writes := 0
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; writes++ {
			object.Data = map[string]string{"n": strconv.Itoa(writes)}
			if err := c.Update(context.Background(), object); err != nil {
				ended <- fmt.Errorf("write %d of the bystander: %w", writes, err)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	ts.Defer(func() {
		stop()
		ts.Check(<-ended)
		ts.Logf("the bystander wrote %d times and was never refused", writes)
		if writes == 0 {
			ts.Fatalf("the bystander never wrote")
		}
	})
}
