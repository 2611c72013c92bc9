package permissiongrant

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/managerconfig"
	"stepbeyond.dev/stepbeyond/internal/notify"
)

// Notices tells approvers of questions, and of grants that expire soon. Who was told stands in the grant, so that a restart
// tells nobody twice and forgets nobody.
type Notices struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Live reads from the API server: what is told, and that it was not told already, must not be old.
	Live     client.Reader
	Notifier *notify.Notifier
	Now      func() time.Time
}

// lookAgain is when a grant that somebody was not told of yet is looked at again.
const lookAgain = time.Minute

// SetupWithManager registers the controller.
func (n *Notices) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("permissiongrant-notices").For(&v1alpha1.PermissionGrant{}).Complete(n)
	if err != nil {
		return fmt.Errorf("set up notices of PermissionGrants: %w", err)
	}
	return nil
}

// Reconcile queues what has to be told of one grant. The queue may forget; the grant does not.
func (n *Notices) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	g := &v1alpha1.PermissionGrant{}
	if err := n.Client.Get(ctx, request.NamespacedName, g); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	waiting := false
	for _, event := range due(g) {
		for _, endpoint := range n.Notifier.Endpoints(managerconfig.Event(event)) {
			if told(g, endpoint, event) {
				continue
			}
			waiting = true
			n.Notifier.Tell(endpoint, managerconfig.Event(event), n.subject(g, event))
		}
	}
	if waiting {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	return reconcile.Result{}, nil
}

// due are the events that people have to know of, as the grant's status is.
func due(g *v1alpha1.PermissionGrant) []v1alpha1.GrantNoticeEvent {
	var events []v1alpha1.GrantNoticeEvent
	if g.Status.State == v1alpha1.GrantPending {
		events = append(events, v1alpha1.NoticeGrantPending)
	}
	expiring := meta.FindStatusCondition(g.Status.Conditions, string(v1alpha1.ConditionExpiring))
	if expiring != nil && g.Status.ExpirationTime != nil && expiring.Reason == string(expiryReason(g.Status.State)) {
		events = append(events, v1alpha1.NoticeGrantExpiring)
	}
	return events
}

// told tells whether the endpoint took this notice. Of a grant that got another end, an earlier warning does not count.
func told(g *v1alpha1.PermissionGrant, endpoint string, event v1alpha1.GrantNoticeEvent) bool {
	return slices.ContainsFunc(g.Status.Notices, func(t v1alpha1.GrantNotice) bool {
		return t.Endpoint == endpoint && t.Event == event &&
			(event != v1alpha1.NoticeGrantExpiring || t.ExpirationTime.Equal(g.Status.ExpirationTime))
	})
}

func (n *Notices) subject(g *v1alpha1.PermissionGrant, event v1alpha1.GrantNoticeEvent) *subject {
	s := &subject{
		notices: n, key: client.ObjectKeyFromObject(g), uid: g.UID, event: event,
		group: g.Spec.Request.Session.Namespace + "/" + g.Spec.Request.Session.Name,
	}
	if event == v1alpha1.NoticeGrantExpiring {
		s.expires = g.Status.ExpirationTime.DeepCopy()
	}
	return s
}

// subject is one notice about one grant.
type subject struct {
	notices *Notices
	key     client.ObjectKey
	uid     types.UID
	group   string
	event   v1alpha1.GrantNoticeEvent
	// expires is the end that a warning is about; nil for other events.
	expires *metav1.Time
}

// ID names grant and event, and of a warning the end that it is about.
func (s *subject) ID() string {
	id := string(s.uid) + "/" + string(s.event)
	if s.expires != nil {
		id += "/" + strconv.FormatInt(s.expires.Unix(), 10)
	}
	return id
}

// Group is the session that asks.
func (s *subject) Group() string { return s.group }

// Look gives the question as it is now; ok is false once it is answered, closed, gone, or told to the endpoint.
func (s *subject) Look(ctx context.Context, endpoint string) (notify.Item, bool, error) {
	g, err := s.live(ctx)
	if g == nil || err != nil {
		return notify.Item{}, false, err
	}
	g.Status = grant.Compute(g, s.notices.Now()) // an answer counts before the reconciler has seen it
	if !s.isDue(g) || told(g, endpoint, s.event) {
		return notify.Item{}, false, nil
	}
	return notify.Item{Question: notify.QuestionOf(g)}, true, nil
}

func (s *subject) isDue(g *v1alpha1.PermissionGrant) bool {
	return slices.Contains(due(g), s.event) && (s.expires == nil || s.expires.Equal(g.Status.ExpirationTime))
}

// Told writes the mark. What endpoints that are no more were told is left out, so that the list stays short.
func (s *subject) Told(ctx context.Context, endpoint string, at time.Time) error {
	var err error
	for range maxMarks {
		var g *v1alpha1.PermissionGrant
		if g, err = s.live(ctx); g == nil || err != nil {
			return err
		}
		mark := v1alpha1.GrantNotice{Endpoint: endpoint, Event: s.event, SentTime: metav1.NewTime(at), ExpirationTime: s.expires}
		g.Status.Notices = slices.DeleteFunc(g.Status.Notices, func(t v1alpha1.GrantNotice) bool {
			return t.Endpoint == endpoint && t.Event == s.event || !s.notices.Notifier.Has(t.Endpoint)
		})
		g.Status.Notices = append(g.Status.Notices, mark)
		// Update, as everybody writes a grant's status: whoever wrote meanwhile wins, and this is tried on what they wrote.
		err = s.notices.Client.Status().Update(ctx, g)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return fmt.Errorf("mark permissiongrant %s as told to %s: %w", s.key, endpoint, err)
}

// maxMarks bounds how often a mark is tried because somebody else wrote the grant in between.
const maxMarks = 5

// live reads the grant; nil when it is gone, or another one has its name.
func (s *subject) live(ctx context.Context) (*v1alpha1.PermissionGrant, error) {
	g := &v1alpha1.PermissionGrant{}
	err := s.notices.Live.Get(ctx, s.key, g)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read permissiongrant %s: %w", s.key, err)
	case g.UID != s.uid:
		return nil, nil
	default:
		return g, nil
	}
}
