package grants

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

const approveLong = `Approve questions. What is sent carries the digest of what was shown: a question that is another one by then is not
approved, and the exit code is 3.

An approval is for exactly what was asked, once, unless you make it wider: --session for the same object as long as the
session lasts, --for for a time. With --for, --match and --command widen it to other names and commands; what a pattern
matches now is shown first, as far as you may list it. In a command, * stays within its word and reaches no folder above.
The policy bounds how wide an answer may be, and no width covers what is asked for another reason, or what is forbidden.`

const approveExamples = `  # Look, then approve exactly this, once
  kubectl stepbeyond approve pg-7k2mq4xdva -n checkout --reason "Snapshot checked."

  # What a notice or a ticket showed you, without being asked again: only if it is that still
  kubectl stepbeyond approve pg-7k2mq4xdva -n checkout --digest v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9 -y

  # Half an hour of debugging in the pods of one workload
  kubectl stepbeyond approve pg-c4wn9r2tbe -n checkout --for 30m --uses 20 --match 'web-*' --command ss --command 'cat /etc/nginx/*'

  # All questions of one session, each exactly and once; answer with y, or with numbers
  kubectl stepbeyond approve -n checkout -l stepbeyond.dev/session=cart-copy-11b2e

  # Whether it would be accepted
  kubectl stepbeyond approve pg-7k2mq4xdva -n checkout -y --dry-run=server`

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunServer = "server"
)

// maxReason is the schema's bound of a reason, in code points.
const maxReason = 240

var (
	digestForm  = regexp.MustCompile(`^v1:[0-9a-f]{64}$`)
	printable   = regexp.MustCompile(`^[^[:cntrl:]]*$`)
	nameForm    = regexp.MustCompile(`^[a-z0-9][-a-z0-9.*]*$`)
	commandForm = regexp.MustCompile(`^[!-)+-~][ -~]*$`)
)

type approveOptions struct {
	*factory.Factory
	selection
	once, session bool
	duration      time.Duration
	uses          int32
	match         string
	commands      []string
	reason        string
	digest        string
	yes           bool
	dryRun        string
}

// Approve approves questions.
func Approve(f *factory.Factory) *cobra.Command {
	o := &approveOptions{Factory: f}
	cmd := &cobra.Command{
		Use:               "approve (NAME... | -l SELECTOR)",
		Short:             "Approve questions, exactly as they were shown",
		Long:              approveLong,
		Example:           approveExamples,
		ValidArgsFunction: complete(f, many, isPending),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context(), cmd.Flags().Changed)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "labels of the questions, as in stepbeyond.dev/session=NAME")
	flags.BoolVar(&o.once, "once", false, "exactly this, once; what happens without any other width")
	flags.BoolVar(&o.session, "session", false, "the same object as long as the session lasts")
	flags.DurationVar(&o.duration, "for", 0, "for a time, as in 30m; whole seconds, at most 168h and what the policy allows")
	flags.Int32Var(&o.uses, "uses", 0, "with --session or --for: how many operations, at most 100 and what the policy allows; what it allows without")
	flags.StringVar(&o.match, "match", "", "with --for: a pattern of names, * for anything behind a beginning, as in 'web-*'")
	flags.StringArrayVar(&o.commands, "command", nil, "with --for, of an exec: a pattern of its words, * within a word, as in 'cat /etc/nginx/*'; may be given several times")
	flags.StringVar(&o.reason, "reason", "", "why, for the record; at most 240 characters")
	flags.StringVar(&o.digest, "digest", "", "the digest that you were shown elsewhere; another question is not approved")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "none, or server: ask the API server, which changes nothing")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func isPending(g *v1alpha1.PermissionGrant) bool { return pendingAt(g, time.Now()) }

func (o *approveOptions) validate(changed func(string) bool) error {
	if err := o.selection.validate(); err != nil {
		return err
	}
	if err := o.validateWidth(changed); err != nil {
		return err
	}
	switch {
	case changed("digest") && !digestForm.MatchString(o.digest):
		return usage("--digest: %q is not v1: and 64 hexadecimal digits", o.digest)
	case changed("digest") && len(o.names) != 1:
		return usage("--digest is about one question: name it")
	case o.dryRun != dryRunNone && o.dryRun != dryRunServer:
		return usage("--dry-run: %q is not none or server", o.dryRun)
	}
	if err := validateReason(o.reason, changed("reason")); err != nil {
		return err
	}
	return answerable(o.yes, o.In)
}

// answerable refuses a question that nobody can answer, before anything is sent.
func answerable(yes bool, in any) error {
	if !yes && !terminal.Is(in) {
		return usage("nobody can be asked, because the input is no terminal: look with kubectl stepbeyond show, and give -y to answer without being asked")
	}
	return nil
}

func (o *approveOptions) run(ctx context.Context, changed func(string) bool) error {
	if err := o.validate(changed); err != nil {
		return err
	}
	d, err := open(o.Factory)
	if err != nil {
		return err
	}
	asked, err := o.pending(ctx, d)
	if err != nil {
		return err
	}
	if o.digest != "" && o.digest != asked[0].Spec.Request.Digest {
		return notShown(asked[0], o.digest)
	}
	scope := o.scope()
	if err := fits(scope, asked); err != nil {
		return err
	}
	b := &batch{desk: d, verdict: v1alpha1.VerdictApprove, reason: o.reason, scope: scope, dry: o.dryRun == dryRunServer, yes: o.yes}
	return b.run(ctx, asked)
}

func validateReason(reason string, given bool) error {
	switch n := len([]rune(reason)); {
	case given && n == 0:
		return usage("--reason is empty: say why, or leave it out")
	case n > maxReason:
		return usage("--reason has %d characters, at most %d are possible", n, maxReason)
	case !printable.MatchString(reason):
		return usage("--reason must be a single line without control characters")
	}
	return nil
}

// notShown is a question whose digest is not the one that the approver saw elsewhere.
func notShown(g *v1alpha1.PermissionGrant, shown string) error {
	return changedError(fmt.Sprintf("%s is not what you were shown: %s, shown %s.", g.Name, short(g.Spec.Request.Digest), short(shown)), g)
}
