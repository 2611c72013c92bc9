package grants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

// operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// decision is what a person sends; the API server adds who they are and when.
type decision struct {
	Verdict     v1alpha1.Verdict     `json:"verdict"`
	ShownDigest string               `json:"shownDigest"`
	Reason      string               `json:"reason,omitempty"`
	Scope       *v1alpha1.GrantScope `json:"scope,omitempty"`
}

// appendDecision adds an answer about exactly what was shown. Nothing but the digest is compared: another approver's answer, or a new
// status, is no reason to look again.
func appendDecision(d decision) []operation {
	return []operation{{Op: "add", Path: "/spec/decisions/-", Value: d}}
}

// conflictBackoff is for writes that meet somebody else's; the answer is about the same question whoever writes first.
var conflictBackoff = wait.Backoff{Steps: 6, Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.5}

// send patches a grant and gives what it then is. A grant that is not what was shown any more is told as that, with its
// own exit code, whatever the API server said of the patch.
func (d *desk) send(ctx context.Context, shown *v1alpha1.PermissionGrant, patch []operation, dry bool) (*v1alpha1.PermissionGrant, error) {
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("write the patch of %s: %w", shown.Name, err)
	}
	var options []client.PatchOption
	if dry {
		options = append(options, client.DryRunAll)
	}
	g := &v1alpha1.PermissionGrant{}
	err = wait.ExponentialBackoffWithContext(ctx, conflictBackoff, func(ctx context.Context) (bool, error) {
		g = &v1alpha1.PermissionGrant{}
		g.Namespace, g.Name = shown.Namespace, shown.Name
		err := d.client.Patch(ctx, g, client.RawPatch(types.JSONPatchType, text), options...)
		return err == nil, ignoreConflict(err)
	})
	if err == nil {
		return g, nil
	}
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = errors.New("somebody else writes it all the time; try again")
	}
	return nil, d.explain(ctx, shown, err)
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// explain tells an error of a grant that changed since it was shown from every other.
func (d *desk) explain(ctx context.Context, shown *v1alpha1.PermissionGrant, err error) error {
	changed := func(format string, args ...any) error { return changedError(fmt.Sprintf(format, args...), shown) }
	live := &v1alpha1.PermissionGrant{}
	switch readErr := d.client.Get(ctx, client.ObjectKeyFromObject(shown), live); {
	case apierrors.IsNotFound(readErr):
		return changed("%s is gone: its agent asked anew, or its session ended.", shown.Name)
	case readErr != nil:
		return fmt.Errorf("answer %s: %w", shown.Name, err)
	}
	switch now := time.Now(); {
	case live.Spec.Request.Digest != shown.Spec.Request.Digest || live.UID != shown.UID:
		return changed("%s is not what you were shown: %s, shown %s.", shown.Name, short(live.Spec.Request.Digest), short(shown.Spec.Request.Digest))
	case grant.ToEngine(live, now).State != grant.ToEngine(shown, d.now).State:
		status := grant.Compute(live, now)
		return changed("%s is %s now: %s", shown.Name, status.State, conditionMessage(&status))
	}
	return fmt.Errorf("answer %s: %w", shown.Name, err)
}

// short is a digest as a sentence shows it.
func short(digest string) string {
	const most = 11
	if len(digest) <= most {
		return digest
	}
	return digest[:most] + "..."
}

// outcome says what an answer came to. It is computed from the answer itself, because the status is written later.
func outcome(g *v1alpha1.PermissionGrant, now time.Time) string {
	status := grant.Compute(g, now)
	given, required := needed(g)
	switch status.State {
	case v1alpha1.GrantDenied:
		return "denied by you"
	case v1alpha1.GrantRevoked:
		return "revoked by you"
	case v1alpha1.GrantPending:
		return fmt.Sprintf("approved by you (%d of %d). %s needed.", given, required, more(required-given))
	}
	text := "approved by you"
	if required > 1 {
		text += fmt.Sprintf(" (%d of %d)", given, required)
	}
	text += ", " + width(&g.Spec.Decisions[len(g.Spec.Decisions)-1].Scope)
	if status.ExpirationTime != nil {
		text += fmt.Sprintf("; to be used within %s", span.Text(status.ExpirationTime.Sub(now)))
	}
	return text
}

func more(n int32) string {
	if n == 1 {
		return "One more person is"
	}
	return fmt.Sprintf("%d more people are", n)
}

// changedError is about a grant that is not what somebody looked at.
func changedError(what string, g *v1alpha1.PermissionGrant) error {
	return exit.With(exit.Changed, fmt.Errorf("%s Nothing was written.\nLook again: kubectl stepbeyond show %s -n %s", what, g.Name, g.Namespace))
}
