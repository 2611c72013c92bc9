// Package consequence tells an approver what else an operation does and how it can be taken back: which volume is
// destroyed, which Pods stop, where traffic led until now. It says only what the API server's own data say, and where it
// could not look it says that. Nothing of it is decided by, and no grant binds to it.
package consequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/screen"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// Lines are what a grant can hold of a telling: at most this many, each of at most maxLine characters.
const (
	MaxEffects = 32
	MaxUndo    = 16
	maxLine    = 512
)

// lookWithin bounds all reads for one question together: an agent waits for the answer, and a question without effects is
// better than none.
const lookWithin = 400 * time.Millisecond

// Volumes are read for the reclaim policy; a namespace's Pods tell who uses what.
//
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups="",resources=endpoints,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// Told is what an approver is told beside the change itself, in single lines without control characters.
type Told struct {
	// Effects are what else happens, at most MaxEffects lines; none when nothing is known.
	Effects []string
	// Undo is how the operation can be taken back, at most MaxUndo lines.
	Undo []string
}

// Of looks at what a request would do. stored is the object that it acts on as it is now (a subresource's main object);
// nil when it does not exist or cannot be read. change are the lines of the request's exact form. It never errs, and takes
// at most lookWithin.
func Of(ctx context.Context, live client.Reader, req *kube.Request, stored *unstructured.Unstructured, change []string) Told {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	l := &look{live: live, req: req, stored: stored, change: change}
	switch {
	case req.Operation == "CONNECT":
		l.connection()
	case req.Operation == "DELETE":
		l.deletion(ctx, req.OldObject)
	case req.Operation == "UPDATE":
		l.update(ctx)
	case req.Subresource == "":
		l.creation(ctx)
	default:
		l.act(ctx)
	}
	return Told{Effects: bounded(l.effects, MaxEffects), Undo: bounded(l.undo, MaxUndo)}
}

func bounded(lines []string, most int) []string {
	if len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("and %d more", len(lines)-most+1))
	}
	return lines
}

// kind names a resource as requests do.
type kind struct{ group, resource string }

var (
	claims          = kind{"", "persistentvolumeclaims"}
	configMaps      = kind{"", "configmaps"}
	namespaces      = kind{"", "namespaces"}
	pods            = kind{"", "pods"}
	secrets         = kind{"", "secrets"}
	services        = kind{"", "services"}
	serviceAccounts = kind{"", "serviceaccounts"}
	daemonSets      = kind{"apps", "daemonsets"}
	deployments     = kind{"apps", "deployments"}
	replicaSets     = kind{"apps", "replicasets"}
	statefulSets    = kind{"apps", "statefulsets"}
	controllers     = kind{"", "replicationcontrollers"}
	cronJobs        = kind{"batch", "cronjobs"}
	jobs            = kind{"batch", "jobs"}
	ingresses       = kind{"networking.k8s.io", "ingresses"}
	networkPolicies = kind{"networking.k8s.io", "networkpolicies"}
)

// look is one telling under way.
type look struct {
	live   client.Reader
	req    *kube.Request
	stored *unstructured.Unstructured
	change []string

	effects, undo []string

	// podList holds the namespace's Pods once they were asked for.
	podList *podList
}

func (l *look) kind() kind { return kind{l.req.Group, l.req.Resource} }

func (l *look) effect(format string, args ...any) {
	l.effects = append(l.effects, screen.Line(fmt.Sprintf(format, args...), maxLine))
}

func (l *look) undone(format string, args ...any) {
	l.undo = append(l.undo, screen.Line(fmt.Sprintf(format, args...), maxLine))
}

// get reads one object. false says that it is not there, or, with a line that says so, that it cannot be read.
func (l *look) get(ctx context.Context, object client.Object, what, namespace, name string) bool {
	err := l.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	switch {
	case err == nil:
		return true
	case apierrors.IsNotFound(err):
		l.effect("%s %s does not exist", what, name)
	default:
		l.effect("%s %s could not be read (%s)", what, name, why(err))
	}
	return false
}

// why is a word for a failed read; the error itself can quote what it read.
func why(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "the manager may not"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), apierrors.IsTimeout(err):
		return "it took too long"
	default:
		return "the API server gave an error"
	}
}

// as reads a request's object as its type; nil for none, and for one that is not as its type says.
func as[T any](fields map[string]any) *T {
	if fields == nil {
		return nil
	}
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object); err != nil {
		return nil
	}
	return object
}

// before and after are the object of an update as a type; ok is false unless both can be read as it.
func before[T any](l *look) (old, now *T, ok bool) {
	old, now = as[T](l.req.OldObject), as[T](l.req.Object)
	return old, now, old != nil && now != nil
}

// storedFields are those of the object as it is now.
func (l *look) storedFields() map[string]any {
	if l.stored == nil {
		return nil
	}
	return l.stored.Object
}

// act tells of a subresource that is created: what it does to its main object.
func (l *look) act(ctx context.Context) {
	switch {
	case l.kind() == pods && l.req.Subresource == "eviction":
		l.deletion(ctx, l.storedFields())
	case l.kind() == pods && l.req.Subresource == "binding":
		l.undone("none: a Pod that runs on a node stays there until it is deleted")
	case l.kind() == serviceAccounts && l.req.Subresource == "token":
		l.effect("whoever holds the token acts as ServiceAccount %s until it expires", l.req.Name)
		l.undone("a token ends with what it is bound to, or with its ServiceAccount, and not before")
	default:
		l.undone("nothing is known of how to take this back")
	}
}

// connection tells of a stream into a Pod. What runs in it is seen by nobody here.
func (l *look) connection() {
	l.undone("what is done through it is not seen, so nobody here can take it back")
	switch l.req.Subresource {
	case "exec", "attach":
		l.effect("it runs inside the container; its output is not seen by Step Beyond")
	case "portforward":
		l.effect("the session reaches these ports of the Pod; what it sends is not seen by Step Beyond")
	default:
		l.effect("what is sent is not seen by Step Beyond")
	}
	pod := as[corev1.Pod](l.storedFields())
	if l.kind() != pods || pod == nil {
		return
	}
	if account := pod.Spec.ServiceAccountName; account != "" && l.req.Subresource != "portforward" {
		l.effect("it has what the Pod has: ServiceAccount %s, its volumes and its network", account)
	}
	for i := range pod.Spec.Containers {
		if security := pod.Spec.Containers[i].SecurityContext; security != nil && security.Privileged != nil && *security.Privileged {
			l.effect("container %s is privileged: it reaches the node", pod.Spec.Containers[i].Name)
		}
	}
}

// creation tells what a new object opens, and that it can be deleted.
func (l *look) creation(ctx context.Context) {
	switch l.kind() {
	case services:
		if s := as[corev1.Service](l.req.Object); s != nil {
			l.exposes(nil, s)
			l.leadsTo(ctx, s)
		}
	case ingresses:
		l.routes(l.req.Object, "will reach")
	case networkPolicies:
		l.selects(ctx, l.req.Object, "applies to")
	}
	switch l.kind() {
	case namespaces:
		l.undone("delete it, with all that was made in it")
	case pods, jobs, cronJobs, deployments, statefulSets, daemonSets, replicaSets, controllers:
		l.undone("delete it; what it did until then stays done")
	default:
		l.undone("delete it")
	}
}
