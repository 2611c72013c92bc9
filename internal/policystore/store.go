package policystore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// ErrNotLoaded is returned until the first snapshot is there; readiness depends on it.
var ErrNotLoaded = errors.New("no policy snapshot is loaded yet")

// +kubebuilder:rbac:groups=stepbeyond.dev,resources=clusteragentpolicies;agentpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Store holds the current snapshot. Every replica has one, leader or not, because every replica answers admission.
type Store struct {
	// Reader lists the policy kinds and namespaces, usually a cache.
	Reader client.Reader

	current atomic.Pointer[Snapshot]

	mu sync.Mutex
	// lastValid generation of each policy object; an invalid object keeps it in force.
	lastValid map[types.UID]client.Object
	listeners []chan struct{}
}

// Current returns the snapshot, or nil before the first one is loaded. Whoever gets nil must refuse.
func (s *Store) Current() *Snapshot { return s.current.Load() }

// Ready is a health check: an error until a snapshot is loaded.
func (s *Store) Ready(*http.Request) error {
	if s.Current() == nil {
		return ErrNotLoaded
	}
	return nil
}

// Changed returns a channel that receives after each new snapshot. A slow reader misses repetitions, never the last.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	listener := make(chan struct{}, 1)
	s.listeners = append(s.listeners, listener)
	return listener
}

// SetupWithManager builds the snapshot once the caches are filled and after each change of a policy or a namespace.
func (s *Store) SetupWithManager(mgr ctrl.Manager) error {
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}} // all changes lead to one rebuild
	})
	everyReplica := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named("policystore").
		Watches(&v1alpha1.ClusterAgentPolicy{}, one, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.AgentPolicy{}, one, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// Labels alone move a namespace in or out.
		Watches(&corev1.Namespace{}, one, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{}) // a cluster without policies has a snapshot too
			return nil
		})).
		WithOptions(controller.Options{NeedLeaderElection: &everyReplica}).
		Complete(reconcile.Func(s.reconcile))
	if err != nil {
		return fmt.Errorf("set up policy store: %w", err)
	}
	return nil
}

func (s *Store) reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	now := metav1.Now()
	if err := s.Rebuild(ctx, now); err != nil {
		return reconcile.Result{}, err
	}
	if end := s.Current().nextExpiry; !end.IsZero() {
		return reconcile.Result{RequeueAfter: max(time.Second, end.Sub(now.Time))}, nil
	}
	return reconcile.Result{}, nil
}

// Rebuild lists everything, replaces invalid objects by their last valid generation and swaps the snapshot.
func (s *Store) Rebuild(ctx context.Context, now metav1.Time) error {
	in, err := s.input(ctx, s.Reader, now)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cluster, policies := in.observed()
	problems := s.keepLastValid(&in)
	snapshot, err := Build(in)
	if err != nil {
		return fmt.Errorf("build policy snapshot: %w", err)
	}
	snapshot.observe(cluster, policies)
	for id, found := range problems {
		snapshot.problems[id] = found
	}
	last := s.current.Swap(snapshot)
	if last != nil && last.same(snapshot) {
		return nil // a namespace that nobody governs came or changed its labels
	}
	for _, listener := range s.listeners {
		select {
		case listener <- struct{}{}:
		default:
		}
	}
	return nil
}

func (s *Store) input(ctx context.Context, reader client.Reader, now metav1.Time) (Input, error) {
	var (
		cluster    v1alpha1.ClusterAgentPolicyList
		policies   v1alpha1.AgentPolicyList
		namespaces corev1.NamespaceList
	)
	for what, list := range map[string]client.ObjectList{
		"cluster agent policies": &cluster, "agent policies": &policies, "namespaces": &namespaces,
	} {
		if err := reader.List(ctx, list); err != nil {
			return Input{}, fmt.Errorf("list %s: %w", what, err)
		}
	}
	return Input{
		Cluster: cluster.Items, Policies: policies.Items, Namespaces: namespaces.Items, Now: now,
	}, nil
}
