package grants

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/printed"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/policy"
)

const showLong = `Show one question: what it does, what else happens, how it can be undone, why it is asked, who asks, and what it needs.

What agents and objects say is shown with every control, bidirectional and invisible character escaped (\u202e), and cut
where it is long, with a note. What is cut is in -o yaml, and the digest covers all of it.`

const showExamples = `  # Everything that an approver needs
  kubectl stepbeyond show pg-7k2mq4xdva -n checkout

  # Nothing cut
  kubectl stepbeyond show pg-7k2mq4xdva -n checkout -o yaml`

// maxShown lines of one section are shown.
const maxShown = 24

type showOptions struct {
	*factory.Factory
	form printed.Form
}

// Show shows one question.
func Show(f *factory.Factory) *cobra.Command {
	o := &showOptions{Factory: f}
	cmd := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show what a question asks",
		Long:              showLong,
		Example:           showExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(f, one, func(*v1alpha1.PermissionGrant) bool { return true }),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.form.Add(cmd)
	return cmd
}

func (o *showOptions) run(ctx context.Context, name string) error {
	if err := o.form.Validate(); err != nil {
		return usage("%w", err)
	}
	d, err := open(o.Factory)
	if err != nil {
		return err
	}
	g, err := d.get(ctx, bare(name))
	if err != nil {
		return err
	}
	if !o.form.Table() {
		return o.form.Print(o.Out, g)
	}
	v := &view{grant: g, now: d.now, paint: d.paint}
	if v.you, err = d.reader(ctx, g); err != nil {
		return err
	}
	if v.session, err = d.sameSession(ctx, g); err != nil {
		return err
	}
	fmt.Fprint(o.Out, v.render())
	return nil
}

// sameSession counts what became of the other questions of the session that are still there.
func (d *desk) sameSession(ctx context.Context, g *v1alpha1.PermissionGrant) (map[policy.GrantState]int, error) {
	found, err := list(ctx, d.client, client.InNamespace(g.Namespace), client.MatchingLabels{v1alpha1.LabelSession: g.Spec.Request.Session.Name})
	if err != nil {
		return nil, err
	}
	counts := map[policy.GrantState]int{}
	for i := range found.Items {
		if other := &found.Items[i]; other.UID != g.UID && other.Spec.Request.Session.UID == g.Spec.Request.Session.UID {
			counts[grant.ToEngine(other, d.now).State]++
		}
	}
	return counts, nil
}

// view is a question as a person sees it.
type view struct {
	grant *v1alpha1.PermissionGrant
	now   time.Time
	paint terminal.Paint
	// you is nil when nobody in particular reads.
	you *reader
	// session counts the other questions of the session by their state.
	session map[policy.GrantState]int
}

// render writes the page. What the agent decides about stands above what it says.
func (v *view) render() string {
	g, request := v.grant, &v.grant.Spec.Request
	status := grant.Compute(g, v.now)
	p := &page{paint: v.paint, most: maxShown}
	given, required := needed(g)
	p.title("", request.Operation.Summary)
	p.line("%s, %s, %d of %d\n", g.Name, v.paint.Text(stateStyle(status.State), string(status.State)), given, required)
	p.matter(request, maxShown)
	p.section("why ask", reasons(request)...)
	p.section("who", v.who()...)
	if said := g.Spec.RequesterComment; said != "" {
		p.section("says", quoted(said), "the agent's own words, not checked")
	}
	p.section("before", v.before()...)
	if status.State == v1alpha1.GrantPending {
		p.section("needs", needs(g, v.you)...)
	}
	p.section("answers", answers(g)...)
	p.section("open", v.until(&status)...)
	p.section("digest", request.Digest)
	p.line("")
	for _, next := range v.next(status.State) {
		p.line("  %s", next)
	}
	return p.b.String()
}

// matter is what a question is about: what it does, what else happens, and the way back.
func (p *page) matter(request *v1alpha1.PermissionRequest, most int) {
	p.most = most
	p.untrusted("does", request.Change)
	p.untrusted("effects", request.Effects)
	p.untrusted("undo", request.Undo)
}

func (v *view) who() []string {
	request := &v.grant.Spec.Request
	line := fmt.Sprintf("session %s (epoch %d)", sessionName(v.grant), request.Session.Epoch)
	if request.Requester.PodName != "" {
		line += ", pod " + screened(request.Requester.PodName)
	}
	if request.Requester.Adapter != "" {
		line += ", adapter " + screened(request.Requester.Adapter)
	}
	if request.Requester.OnBehalfOf != "" {
		line += ", for " + screened(request.Requester.OnBehalfOf)
	}
	return []string{line, "as " + screened(request.Requester.Username) + ", " + age(v.grant, v.now) + " ago"}
}

// before says what was decided about questions like this one, as far as it is known.
func (v *view) before() []string {
	var lines []string
	if v.session != nil {
		line := "this session: "
		for _, state := range []policy.GrantState{policy.GrantPending, policy.GrantApproved, policy.GrantExhausted, policy.GrantDenied, policy.GrantExpired, policy.GrantRevoked, policy.GrantSuperseded, policy.GrantStale} {
			if n := v.session[state]; n > 0 {
				line += fmt.Sprintf("%d %s, ", n, stateWord(state))
			}
		}
		if line == "this session: " {
			line += "no other question, "
		}
		lines = append(lines, line[:len(line)-len(", ")])
	}
	request := &v.grant.Spec.Request
	if s := v.grant.Status.Similar; s != nil {
		lines = append(lines, fmt.Sprintf("%s %s in %s since %s: %d approved, %d denied", request.Operation.Verb,
			screened(request.Operation.Target.Resource), v.grant.Namespace, s.SinceTime.UTC().Format(time.DateOnly), s.Approved, s.Denied))
	}
	return lines
}

func stateWord(state policy.GrantState) string {
	if state == policy.GrantExhausted {
		return "used"
	}
	return lower(string(state))
}

func (v *view) until(status *v1alpha1.PermissionGrantStatus) []string {
	request := &v.grant.Spec.Request
	if status.ExpirationTime == nil {
		return []string{fmt.Sprintf("no: %s", conditionMessage(status))}
	}
	end := fmt.Sprintf("until %s (%s)", status.ExpirationTime.UTC().Format("2006-01-02 15:04 MST"), span.Text(status.ExpirationTime.Sub(v.now)))
	if status.State == v1alpha1.GrantApproved {
		return []string{fmt.Sprintf("%s for %d more uses", end, *status.UsesLeft)}
	}
	return []string{end + "; once approved, to be used within " + span.Text(time.Duration(request.UseWithinSeconds)*time.Second)}
}

// next are the commands that make sense now.
func (v *view) next(state v1alpha1.GrantState) []string {
	at := v.grant.Name + " -n " + v.grant.Namespace
	switch state {
	case v1alpha1.GrantPending:
		return []string{"kubectl stepbeyond approve " + at, "kubectl stepbeyond deny    " + at + ` --reason "..."`}
	case v1alpha1.GrantApproved:
		return []string{"kubectl stepbeyond revoke " + at + ` --reason "..."`}
	case v1alpha1.GrantDenied:
		return []string{"kubectl stepbeyond reopen " + at}
	default:
		return []string{"kubectl stepbeyond why " + at}
	}
}
