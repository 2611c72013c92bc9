package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Names of contenders.
const (
	none      = "none"
	bare      = "bare"
	excluded  = "excluded"
	governed  = "governed"
	bystander = "bystander"
)

// contender is a caller under one configuration.
type contender struct {
	name    string
	plane   *env.Env
	writers *writers
	// webhookCPU is the CPU time of the webhook's process; nil where there is none.
	webhookCPU func() (time.Duration, error)
}

// field is everything that runs.
type field struct {
	contenders []*contender
	ours       *cluster.Cluster
	stops      []func() error
}

// stop ends what runs, the last first.
func (f *field) stop() error {
	var errs []error
	for i := range f.stops {
		errs = append(errs, f.stops[len(f.stops)-1-i]())
	}
	return errors.Join(errs...)
}

// newField starts a control plane for each configuration. The field that comes with an error is to be stopped too.
func newField(ctx context.Context, progress func(string, ...any)) (*field, error) {
	f := &field{}
	for _, configuration := range []struct {
		name    string
		install func(context.Context, *field, *env.Env) error
	}{{none, withNothing}, {bare, withBare}, {excluded, withExcluding}, {governed, withOurs}} {
		progress("start the control plane of %s", configuration.name)
		plane, err := startPlane(ctx)
		if err != nil {
			return f, err
		}
		f.stops = append(f.stops, plane.Stop)
		if err := configuration.install(ctx, f, plane); err != nil {
			return f, fmt.Errorf("configuration of %s: %w", configuration.name, err)
		}
	}
	return f, nil
}

// add the contender of a caller.
func (f *field) add(name string, plane *env.Env, cfg *rest.Config, namespace string, webhookCPU func() (time.Duration, error)) error {
	w, err := newWriters(cfg, namespace)
	if err != nil {
		return err
	}
	f.contenders = append(f.contenders, &contender{name: name, plane: plane, writers: w, webhookCPU: webhookCPU})
	return nil
}

func withNothing(ctx context.Context, f *field, plane *env.Env) error {
	cfg, err := newCaller(ctx, plane)
	if err != nil {
		return err
	}
	return f.add(none, plane, cfg, callers, nil)
}

// withOurs has two contenders, whose caller is an agent and somebody else.
func withOurs(ctx context.Context, f *field, plane *env.Env) (err error) {
	if f.ours, err = cluster.Govern(ctx, plane); err != nil {
		return err
	}
	f.stops = append(f.stops, f.ours.Manager.Stop)
	home, err := f.ours.Home(ctx, "agents")
	if err != nil {
		return err
	}
	managerCPU := func() (time.Duration, error) { return plane.CPU("manager") }
	if err := f.add(governed, plane, home.Agent.Config, home.Namespace, managerCPU); err != nil {
		return err
	}
	cfg, err := newCaller(ctx, plane)
	if err != nil {
		return err
	}
	return f.add(bystander, plane, cfg, callers, managerCPU)
}

// callers is the namespace of a caller who is not governed, and the name of its ServiceAccount and Pod.
const callers = "callers"

// newCaller makes a ServiceAccount that may do everything, and a Pod that its token is bound to.
func newCaller(ctx context.Context, plane *env.Env) (*rest.Config, error) {
	admin, err := plane.Client()
	if err != nil {
		return nil, err
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: callers}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: callers, Name: callers}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "everything-" + callers},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: callers, Name: callers}},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: callers, Name: callers},
			Spec:       corev1.PodSpec{ServiceAccountName: callers, Containers: []corev1.Container{{Name: callers, Image: "registry.acme.example/caller:1"}}},
		},
	} {
		if err := admin.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create %T %s: %w", object, callers, err)
		}
	}
	token, err := plane.ServiceAccountToken(ctx, callers, callers, callers)
	if err != nil {
		return nil, err
	}
	return plane.Token(token), nil
}

// eventually calls done until it answers nil, for at most a minute.
func eventually(ctx context.Context, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
