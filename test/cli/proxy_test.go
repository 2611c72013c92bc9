package cli_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"
)

// connect puts a connection of the user, on which before sees every request first and after every response, into $name.
func connect(ts *testscript.TestScript, name, username string, before func(*http.Request), after func(*http.Response) error) {
	user, err := world.Env.User(username)
	ts.Check(err)
	transport, err := rest.TransportFor(user)
	ts.Check(err)
	target, err := url.Parse(user.Host)
	ts.Check(err)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ModifyResponse: after}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		proxy.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	kubeconfig, err := world.Env.Kubeconfig(name, &rest.Config{Host: server.URL}, "")
	ts.Check(err)
	ts.Setenv(name, kubeconfig)
}

// interrupted NAME USER DELETIONS puts a connection of the user into $NAME that breaks at the deletion after so many.
func interrupted(ts *testscript.TestScript, _ bool, args []string) {
	left, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	var deletions atomic.Int64
	connect(ts, args[0], args[1], func(r *http.Request) {
		if r.Method == http.MethodDelete && deletions.Add(1) > left {
			panic(http.ErrAbortHandler)
		}
	}, nil)
}

// meddled NAME USER RESOURCE KUBECTL... puts a connection of the user into $NAME on which the administrator does something
// just before the first patch of the resource.
func meddled(ts *testscript.TestScript, _ bool, args []string) {
	kubectl, resource, admin := args[3:], args[2], ts.Getenv("admin")
	var once sync.Once
	connect(ts, args[0], args[1], func(r *http.Request) {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/"+resource+"/") {
			return
		}
		once.Do(func() {
			if output, err := exec.Command("kubectl", append(kubectl, "--kubeconfig="+admin)...).CombinedOutput(); err != nil {
				panic(string(output))
			}
		})
	}, nil)
}
