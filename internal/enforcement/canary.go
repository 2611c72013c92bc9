package enforcement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"stepbeyond.dev/stepbeyond/policy"
)

const (
	// probeName is the only name under which the canary may write in its own namespace, and only as a dry run.
	probeName = "probe"
	// probeTimeout bounds one probe; a webhook that does not answer takes webhookTimeoutSeconds of it.
	probeTimeout = 10 * time.Second
	// awaitInterval is short against the second or two in which an API server notices a changed configuration.
	awaitInterval = 250 * time.Millisecond
)

var canaryAccount = ServiceAccount{Namespace: CanaryNamespace, Name: "canary"}

// Answer is how the API server answered a probe that an enforcer should have refused.
type Answer string

const (
	// AnswerAllowed: nobody refused it.
	AnswerAllowed Answer = "Allowed"
	// AnswerRefusedOtherwise: refused, by another enforcer or for another reason.
	AnswerRefusedOtherwise Answer = "RefusedOtherwise"
	// AnswerFailed: the request failed, so nothing is known; a webhook that cannot be reached ends here.
	AnswerFailed Answer = "Failed"
)

// Failure is an enforcer that did not refuse its probe. Prove joins one for each.
type Failure struct {
	// Address is the host:port of the API server that answered.
	Address string
	// Enforcer is EntryEnforce or the name of a floor policy.
	Enforcer string
	Answer   Answer
	// Err is the API server's answer; nil for AnswerAllowed.
	Err error
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("%s is not proven: canary request to %s: %s", f.Enforcer, f.Address, f.Answer)
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

func (f *Failure) Unwrap() error { return f.Err }

// Answered is false for a request that ended on the way to the API server or back.
func (f *Failure) Answered() bool {
	var status apierrors.APIStatus
	return f.Err == nil || errors.As(f.Err, &status)
}

// Proof says what refused the canary at Time. It is as good as that of the worst API server.
type Proof struct {
	WebhookProven bool
	FloorProven   bool
	// FloorPolicies counts the policies of the floor that refused their probe; 3 have one.
	FloorPolicies int
	// Time is when the first request was sent.
	Time time.Time
	// Servers are the API servers that were asked, sorted by address; none without a token or their addresses.
	Servers []ServerProof
}

// ServerProof is what one API server proved.
type ServerProof struct {
	// Address is host:port.
	Address                    string
	WebhookProven, FloorProven bool
	floorPolicies              int
}

// Canary proves that the API server enforces: as the ServiceAccount stepbeyond-canary/canary, which is always governed
// and has no session, it sends dry-run requests that its RBAC allows and that one enforcer each must refuse. The
// policies against impersonation and stamp changes have no probe: the first needs the right to impersonate, the second
// an object that stays. Each API server is asked, because each has a view of the configuration of its own. Methods may be
// called concurrently.
type Canary struct {
	// Servers finds the API servers beside the configured one. Omitted: there are none.
	Servers Servers

	manager  typedcorev1.CoreV1Interface
	identity *rest.Config // where the API server is, without an identity

	mu      sync.Mutex
	token   string
	renew   time.Time
	clients map[string]typedcorev1.CoreV1Interface // as the canary with this token, by address
}

// NewCanary uses cfg, the manager's, to ask for the canary's tokens and to find the API server.
func NewCanary(cfg *rest.Config) (*Canary, error) {
	manager, err := typedcorev1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client for the canary's token: %w", err)
	}
	identity := rest.AnonymousClientConfig(cfg)
	identity.QPS = -1 // a proof is a handful of requests, and a throttled one would say nothing about the server
	// Pod Security warns about the privileged probe; a log line for each proof helps nobody.
	identity.WarningHandlerWithContext = rest.NoWarnings{}
	return &Canary{manager: manager, identity: identity}, nil
}

// Prove sends each probe once to every API server. The error joins one *Failure for each enforcer of each server that
// did not refuse its probe as it should; without a token or the servers' addresses it is that one error, and nothing is
// proven.
func (c *Canary) Prove(ctx context.Context) (Proof, error) {
	proof := Proof{Time: time.Now()}
	clients, err := c.authenticated(ctx)
	if err != nil {
		return proof, err
	}
	addresses := slices.Sorted(maps.Keys(clients))
	servers, failures := make([]ServerProof, len(addresses)), make([][]error, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() { servers[i], failures[i] = c.ask(ctx, address, clients[address]) })
	}
	asked.Wait()
	proof.Servers, proof.WebhookProven, proof.FloorProven = servers, true, true
	proof.FloorPolicies = servers[0].floorPolicies
	for _, s := range servers {
		proof.WebhookProven = proof.WebhookProven && s.WebhookProven
		proof.FloorProven = proof.FloorProven && s.FloorProven
		proof.FloorPolicies = min(proof.FloorPolicies, s.floorPolicies)
	}
	return proof, errors.Join(slices.Concat(failures...)...)
}

// ask sends each probe to one API server.
func (c *Canary) ask(ctx context.Context, address string, client typedcorev1.CoreV1Interface) (ServerProof, []error) {
	proof := ServerProof{Address: address, WebhookProven: true, FloorProven: true}
	var failures []error
	var unreachable error
	for _, p := range probes {
		failure := &Failure{Enforcer: p.enforcer, Answer: AnswerFailed, Err: unreachable}
		if unreachable == nil {
			failure = p.run(ctx, client)
		}
		if failure == nil {
			if p.enforcer != EntryEnforce {
				proof.floorPolicies++
			}
			continue
		}
		failure.Address = address
		if !failure.Answered() {
			unreachable = failure.Err // what comes next would wait as long
		}
		if apierrors.IsUnauthorized(failure.Err) {
			c.forget()
		}
		failures = append(failures, failure)
		if p.enforcer == EntryEnforce {
			proof.WebhookProven = false
		} else {
			proof.FloorProven = false
		}
	}
	return proof, failures
}

// Await proves again and again until everything is proven, and returns the last answer when within has passed: API
// servers act on a changed configuration a second or two after it is written. The proof that is under way at that
// moment is still finished.
func (c *Canary) Await(ctx context.Context, within time.Duration) (Proof, error) {
	late := time.After(within)
	for {
		proof, err := c.Prove(ctx)
		if err == nil {
			return proof, nil
		}
		select {
		case <-ctx.Done():
			return proof, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-late:
			return proof, fmt.Errorf("within %s: %w", within, err)
		case <-time.After(awaitInterval):
		}
	}
}

// probe is one dry-run request and who must refuse it.
type probe struct {
	enforcer string
	reason   metav1.StatusReason
	send     func(context.Context, typedcorev1.CoreV1Interface, metav1.CreateOptions) error
}

var probes = []probe{
	{EntryEnforce, metav1.StatusReason(policy.ReasonNoSession), createConfigMap(probeName)},
	{FloorAuthority, metav1.StatusReasonForbidden, createTokenSecret},
	{FloorPods, metav1.StatusReasonForbidden, createPrivilegedTemplate},
	{FloorSelf, metav1.StatusReasonForbidden, createConfigMap("not-" + probeName)},
}

func (p probe) run(ctx context.Context, client typedcorev1.CoreV1Interface) *Failure {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := p.send(ctx, client, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return &Failure{Enforcer: p.enforcer, Answer: AnswerAllowed}
	}
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status) || status.Status().Code != 403:
		return &Failure{Enforcer: p.enforcer, Answer: AnswerFailed, Err: err}
	case status.Status().Reason != p.reason || !strings.Contains(status.Status().Message, p.signature()):
		return &Failure{Enforcer: p.enforcer, Answer: AnswerRefusedOtherwise, Err: err}
	default:
		return nil
	}
}

// signature is how the API server introduces the words of the enforcer.
func (p probe) signature() string {
	if p.enforcer == EntryEnforce {
		return fmt.Sprintf("admission webhook %q denied the request: ", p.enforcer)
	}
	return fmt.Sprintf("ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s' denied request: Forbidden: ", p.enforcer)
}

func createConfigMap(name string) func(context.Context, typedcorev1.CoreV1Interface, metav1.CreateOptions) error {
	return func(ctx context.Context, client typedcorev1.CoreV1Interface, options metav1.CreateOptions) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.ConfigMaps(CanaryNamespace).Create(ctx, object, options)
		return err
	}
}

func createTokenSecret(ctx context.Context, client typedcorev1.CoreV1Interface, options metav1.CreateOptions) error {
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Annotations: map[string]string{corev1.ServiceAccountNameKey: canaryAccount.Name}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	_, err := client.Secrets(CanaryNamespace).Create(ctx, object, options)
	return err
}

// createPrivilegedTemplate sends a PodTemplate: what it says is judged like a Pod, and nothing can come of it. A Pod
// would be refused by Pod Security or for its ServiceAccount before the floor is asked.
func createPrivilegedTemplate(ctx context.Context, client typedcorev1.CoreV1Interface, options metav1.CreateOptions) error {
	object := &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: probeName},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": probeName}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: probeName, Image: probeName, SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
			}}},
		},
	}
	_, err := client.PodTemplates(CanaryNamespace).Create(ctx, object, options)
	return err
}
