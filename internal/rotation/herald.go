package rotation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/applyconfigurations/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// annotationPaths of a replica's Lease holds the IDs of the generations whose paths it serves, separated by commas.
	annotationPaths = "stepbeyond.dev/serves-paths"
	// annotationLeaf holds the ID of the generation that signed its leaf.
	annotationLeaf = "stepbeyond.dev/serves-leaf"

	leasePrefix = "stepbeyond-replica-"
	fieldOwner  = client.FieldOwner("stepbeyond-replica")
	// goodbyeWithin bounds the last write of a replica.
	goodbyeWithin = 5 * time.Second
)

// replicaLabels select the Leases of the replicas.
func replicaLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "stepbeyond", "app.kubernetes.io/component": "replica"}
}

// Herald says in a Lease what its replica serves, and has the Keeper look at the Secret. Every replica has one.
type Herald struct {
	Keeper *Keeper
	Client client.Client

	name, holder string
	// heard is when the last round began that came to its end.
	heard atomic.Pointer[time.Time]
}

// NewHerald gives the replica a name of its own, which a process that is started again does not have.
func NewHerald(keeper *Keeper, c client.Client) (*Herald, error) {
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("name the replica: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name the replica: %w", err)
	}
	id := hex.EncodeToString(random)
	return &Herald{Keeper: keeper, Client: c, name: leasePrefix + id, holder: host + "_" + id}, nil
}

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=stepbeyond-system,resources=leases,verbs=create;patch;list;delete

// NeedLeaderElection is false: every replica serves.
func (h *Herald) NeedLeaderElection() bool { return false }

// Start does a round at once and then with every poll, until the context ends.
func (h *Herald) Start(ctx context.Context) error {
	defer h.leave(ctx)
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("herald"))
	var said complaint
	for {
		said.about(ctx, h.Round(ctx), "Serving what was served before")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(h.Keeper.settings.Timing.Poll):
		}
	}
}

// complaint is the error that was logged last. One that stays the same is not logged with every poll.
type complaint string

func (c *complaint) about(ctx context.Context, err error, consequence string) {
	switch {
	case err == nil:
		*c = ""
	case ctx.Err() == nil && string(*c) != err.Error():
		*c = complaint(err.Error())
		log.FromContext(ctx).Error(err, consequence)
	}
}

// Round says what is served, looks at the Secret, and says it again when that changed. The order makes the replica safe to
// use: see the package.
func (h *Herald) Round(ctx context.Context) error {
	began := h.Keeper.settings.Now()
	if err := h.Keeper.Renew(); err != nil {
		return err
	}
	before := h.Keeper.Current().Installation
	if err := h.say(ctx); err != nil {
		return err
	}
	problem := h.Keeper.Refresh(ctx)
	if problem != nil && !unusable(problem) {
		return problem
	}
	if h.Keeper.Current().Installation != before {
		if err := h.say(ctx); err != nil {
			return err
		}
	}
	h.heard.Store(&began)
	return problem
}

func (h *Herald) say(ctx context.Context) error {
	serving := h.Keeper.Current().Installation
	var paths []string
	for _, g := range serving.Generations() {
		paths = append(paths, g.ID())
	}
	lease := coordination.Lease(h.name, h.Keeper.settings.Namespace).WithLabels(replicaLabels()).
		WithAnnotations(map[string]string{annotationPaths: strings.Join(paths, ","), annotationLeaf: serving.Current.ID()}).
		WithSpec(coordination.LeaseSpec().WithHolderIdentity(h.holder).WithRenewTime(metav1.NowMicro()).
			WithLeaseDurationSeconds(max(1, int32(h.Keeper.settings.Timing.GoneAfter().Seconds()))))
	if err := h.Client.Apply(ctx, lease, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("say what the replica serves: lease %s: %w", h.name, err)
	}
	return nil
}

// leave takes the Lease away, so that no rotation waits for a replica that ended in order.
func (h *Herald) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeWithin)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.Keeper.settings.Namespace, Name: h.name}}
	if err := client.IgnoreNotFound(h.Client.Delete(ctx, lease)); err != nil {
		log.FromContext(ctx).Error(err, "The next rotation waits until this replica counts as gone", "lease", h.name)
	}
}

var errUnheard = errors.New("the installation's Secret was not read, or the replica's Lease not written, for too long")

// Ready is a health check: an error until the first round has ended, and when none has for half the time after which the
// leader takes the replica for gone and rotates without it.
func (h *Herald) Ready(*http.Request) error {
	heard := h.heard.Load()
	if heard == nil || h.Keeper.settings.Now().Sub(*heard) > h.Keeper.settings.Timing.GoneAfter()/2 {
		return errUnheard
	}
	return nil
}
