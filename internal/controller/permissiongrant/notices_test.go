package permissiongrant

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

func TestWhatIsDueFollowsFromTheStatus(t *testing.T) {
	decision := condition(v1alpha1.ConditionExpiring, metav1.ConditionTrue, v1alpha1.ReasonDecisionDue, asked)
	use := condition(v1alpha1.ConditionExpiring, metav1.ConditionTrue, v1alpha1.ReasonUseDue, asked)
	const pending, expiring = v1alpha1.NoticeGrantPending, v1alpha1.NoticeGrantExpiring
	for _, tt := range []struct {
		name  string
		grant *v1alpha1.PermissionGrant
		want  []v1alpha1.GrantNoticeEvent
	}{
		{"a question that the reconciler has not seen", openFor("", time.Hour), nil},
		{"a question", openFor(v1alpha1.GrantPending, time.Hour), []v1alpha1.GrantNoticeEvent{pending}},
		{"a question that ends soon", openFor(v1alpha1.GrantPending, time.Hour, decision), []v1alpha1.GrantNoticeEvent{pending, expiring}},
		{"an approval", openFor(v1alpha1.GrantApproved, time.Hour), nil},
		{"an approval whose question was about to end", openFor(v1alpha1.GrantApproved, time.Hour, decision), nil},
		{"an approval that ends soon", openFor(v1alpha1.GrantApproved, time.Hour, use), []v1alpha1.GrantNoticeEvent{expiring}},
		{"a denied question that was about to end", openFor(v1alpha1.GrantDenied, time.Hour, decision), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, due(tt.grant)); diff != "" {
				t.Errorf("due (-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever was told is not told again, unless it is of another end.
func TestAMarkIsForAnEndpointAnEventAndAnEnd(t *testing.T) {
	g := openFor(v1alpha1.GrantApproved, 2*time.Hour)
	g.Status.Notices = []v1alpha1.GrantNotice{
		{Endpoint: "bot", Event: v1alpha1.NoticeGrantPending},
		{Endpoint: "bot", Event: v1alpha1.NoticeGrantExpiring, ExpirationTime: &metav1.Time{Time: asked.Add(time.Hour)}},
		{Endpoint: "chat", Event: v1alpha1.NoticeGrantExpiring, ExpirationTime: &metav1.Time{Time: asked.Add(2 * time.Hour)}},
	}
	for _, tt := range []struct {
		endpoint string
		event    v1alpha1.GrantNoticeEvent
		want     bool
	}{
		{"bot", v1alpha1.NoticeGrantPending, true}, {"chat", v1alpha1.NoticeGrantPending, false}, {"other", v1alpha1.NoticeGrantPending, false},
		{"bot", v1alpha1.NoticeGrantExpiring, false}, {"chat", v1alpha1.NoticeGrantExpiring, true},
	} {
		if got := told(g, tt.endpoint, tt.event); got != tt.want {
			t.Errorf("%s was told of %s: %v, want %v", tt.endpoint, tt.event, got, tt.want)
		}
	}
}
