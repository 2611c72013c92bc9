package enforcement_test

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// machineAddress is an IPv4 address of this machine that an EndpointSlice may hold.
func machineAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, is := address.(*net.IPNet); is && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Skip("this machine has no address but the loopback one, which no EndpointSlice may hold")
	return ""
}

// another starts an API server that also listens on the machine's address; its port is returned too.
func another(t *testing.T, name string, args ...string) (*env.APIServer, int32) {
	t.Helper()
	server, err := cluster.StartAPIServer(t.Context(), name, append(args, "--bind-address=0.0.0.0")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Kill() })
	u, err := url.Parse(server.At(kubeconfig).Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return server, int32(port)
}

// slice names ports of a host as those of API servers.
func slice(name, host string, ports ...int32) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{host}}},
	}
	for _, port := range ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(fmt.Sprintf("https-%d", port)), Port: new(port)})
	}
	return slice
}

// publish names the ports of API servers of the machine in the Service kubernetes, as API servers do themselves.
func publish(t *testing.T, host string, ports ...int32) {
	t.Helper()
	published := slice("kubernetes", host, ports...)
	_ = k8s.Delete(t.Context(), published.DeepCopy())
	create(t, published)
}

// Proves M-2.
func TestOnlyWhatAPIServersPublishThemselvesCounts(t *testing.T) {
	const host = "192.0.2.1"
	numbered := func(n int32) []int32 {
		var ports []int32
		for port := range n {
			ports = append(ports, 6000+port)
		}
		return ports
	}
	create(t, slice("kubernetes-mine", "192.0.2.66", 443))
	servers := admission.PublishedServers{Live: k8s}
	if got, err := servers.Addresses(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("addresses %v, %v, want none of a slice that no API server writes", got, err)
	}
	for _, tt := range []struct {
		name string
		n    int32
		err  error
	}{{"one", 1, nil}, {"as many as are asked", 16, nil}, {"more than are asked", 17, admission.ErrTooManyServers}} {
		t.Run(tt.name, func(t *testing.T) {
			publish(t, host, numbered(tt.n)...)
			got, err := servers.Addresses(t.Context())
			var want []string
			for _, port := range numbered(tt.n) {
				if tt.err == nil {
					want = append(want, fmt.Sprintf("%s:%d", host, port))
				}
			}
			if !cmp.Equal(got, want) || !errors.Is(err, tt.err) {
				t.Errorf("addresses %v, %v, want %v, %v", got, err, want, tt.err)
			}
		})
	}
}

// Proves M-2, F-1, K-2.
func TestEachPublishedAPIServerIsAskedAndTheOneThatEnforcesNothingIsNamed(t *testing.T) {
	host := machineAddress(t)
	create(t, profile(), clusterPolicy("default"), namespace("everywhere", "standard"))
	canary, err := admission.NewCanary(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	canary.Servers = admission.PublishedServers{Live: k8s}
	o := loaded(t)
	o.scope.Canary = canary
	_, second := another(t, "second")
	blind, third := another(t, "blind", "--disable-admission-plugins=ValidatingAdmissionWebhook")
	wrong := net.JoinHostPort(host, strconv.Itoa(int(third)))

	publish(t, host, second)
	o.step(t)
	if proof, err := canary.Prove(t.Context()); err != nil || len(proof.Servers) != 2 {
		t.Fatalf("proof of a good second server: %+v, %v", proof, err)
	}
	if got := readyMessage(t); got != "Webhook and floor refused the canary requests on each of 2 API servers." {
		t.Errorf("message %q", got)
	}

	publish(t, host, second, third)
	o.step(t)
	_, err = canary.Prove(t.Context())
	ignoreErr := cmpopts.IgnoreFields(admission.Failure{}, "Err")
	want := []*admission.Failure{{Address: wrong, Enforcer: admission.EntryEnforce, Answer: admission.AnswerAllowed}}
	if diff := cmp.Diff(want, failuresOf(err), ignoreErr); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if got := readyMessage(t); got != "Not refused as it should be: enforce.stepbeyond.dev: Allowed at "+wrong {
		t.Errorf("message %q", got)
	}
	proven := func(address, enforcer string) float64 {
		return testutil.ToFloat64(o.scope.Alarm.Metrics.ServerProven.WithLabelValues(address, enforcer))
	}
	if got := []float64{proven(wrong, "webhook"), proven(wrong, "floor"), proven(net.JoinHostPort(host, strconv.Itoa(int(second))), "webhook")}; !cmp.Equal(got, []float64{0, 1, 1}) {
		t.Errorf("proven by the blind server, its floor, the second server: %v, want 0, 1, 1", got)
	}

	if err := blind.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err = canary.Prove(t.Context())
	for _, failure := range failuresOf(err) {
		if failure.Address != wrong || failure.Answer != admission.AnswerFailed || failure.Answered() {
			t.Errorf("failure of a server that is down: %v", failure)
		}
	}
	if len(failuresOf(err)) != 4 {
		t.Errorf("a server that is down proves nothing: %v", err)
	}

	publish(t, host, second)
	o.step(t)
	if got := testutil.CollectAndCount(o.scope.Alarm.Metrics.ServerProven); got != 4 {
		t.Errorf("%d series, want 4: two enforcers of two servers", got)
	}
	if got := readyMessage(t); !strings.Contains(got, "each of 2 API servers") {
		t.Errorf("message %q", got)
	}
}

// Proves F-1.
func TestACertificateOfAnotherNameFailsClearly(t *testing.T) {
	host := machineAddress(t)
	_, port := another(t, "other-name")
	cfg := *kubeconfig
	cfg.ServerName = "kubernetes" // which the certificate of the tests is not for
	canary, err := admission.NewCanary(&cfg)
	if err == nil {
		publish(t, host, port)
		canary.Servers = admission.PublishedServers{Live: k8s}
		_, err = canary.Prove(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "x509: certificate is valid for") {
		t.Errorf("error %v, want one that names the certificate", err)
	}
}

func failuresOf(err error) []*admission.Failure {
	var all []*admission.Failure
	joined, is := errors.AsType[interface {
		error
		Unwrap() []error
	}](err)
	if !is {
		return nil
	}
	for _, one := range joined.Unwrap() {
		if failure, is := errors.AsType[*admission.Failure](one); is {
			all = append(all, failure)
		}
	}
	return all
}

func readyMessage(t *testing.T) string {
	t.Helper()
	condition := meta.FindStatusCondition(policyStatus(t, "default").Conditions, string(v1alpha1.ConditionEnforcementReady))
	if condition == nil {
		t.Fatal("no condition EnforcementReady")
	}
	return condition.Message
}
