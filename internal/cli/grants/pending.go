package grants

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/printed"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

const pendingLong = `List the questions that wait for an answer, the most serious first: who needs more people, then Destructive, Security,
Credentials and External, then who waits longest.

The first line says how many wait and for how long, and what became of the questions of the last 24 hours, as far as their
grants are still there. LEFT is the time until a question expires, which never approves it. NEEDS is how many people have to
approve. With -w it goes on: each new question is a line, and each one that ends is a line with its end under LEFT.`

const pendingExamples = `  # What waits in the namespace of the kubeconfig's context, and what waits in all
  kubectl stepbeyond pending
  kubectl stepbeyond pending -A

  # What one session asks, what expires first at the top, with user, age and rule
  kubectl stepbeyond pending -n checkout -l stepbeyond.dev/session=fix-latency-9c1f0 --sort left -o wide

  # The names alone, for a script
  kubectl stepbeyond pending -n checkout -o name`

// orders of --sort.
var orders = map[string]func(a, b *v1alpha1.PermissionGrant) int{"risk": byRisk, "age": byAge, "left": byEnd}

type pendingOptions struct {
	*factory.Factory
	all, watch bool
	selector   string
	sort       string
	form       printed.Form
}

// Pending lists the questions that wait.
func Pending(f *factory.Factory) *cobra.Command {
	o := &pendingOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "pending [-n NAMESPACE | -A]",
		Short:   "List the questions that wait for an answer",
		Long:    pendingLong,
		Example: pendingExamples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "list all namespaces")
	flags.BoolVarP(&o.watch, "watch", "w", false, "go on with what is asked and answered from now on")
	flags.StringVarP(&o.selector, "selector", "l", "", "labels, as in stepbeyond.dev/session=NAME or stepbeyond.dev/verb=delete")
	flags.StringVar(&o.sort, "sort", "risk", "risk, age or left")
	o.form.Add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"risk", "age", "left"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *pendingOptions) validate() (labels.Selector, error) {
	switch {
	case orders[o.sort] == nil:
		return nil, usage("--sort: %q is not risk, age or left", o.sort)
	case o.all && o.Namespace() != "":
		return nil, usage("--all-namespaces and --namespace exclude each other")
	case o.watch && !o.form.Table():
		return nil, usage("--watch prints tables only: leave -o %s out", o.form)
	}
	if err := o.form.Validate(); err != nil {
		return nil, usage("%w", err)
	}
	return parseSelector(o.selector)
}

func parseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, usage("--selector: %w", err)
	}
	return selector, nil
}

func (o *pendingOptions) run(ctx context.Context) error {
	selector, err := o.validate()
	if err != nil {
		return err
	}
	d, err := open(o.Factory)
	if err != nil {
		return err
	}
	where := []client.ListOption{client.MatchingLabelsSelector{Selector: selector}}
	if !o.all {
		where = append(where, client.InNamespace(d.namespace))
	}
	found, err := list(ctx, d.client, where...)
	if err != nil {
		return err
	}
	waiting := &v1alpha1.PermissionGrantList{ListMeta: found.ListMeta}
	q := queue{now: d.now}
	for i := range found.Items {
		if g := &found.Items[i]; pendingAt(g, d.now) {
			q.waiting = append(q.waiting, g)
		} else {
			q.ended = append(q.ended, g)
		}
	}
	slices.SortFunc(q.waiting, orders[o.sort])
	if !o.form.Table() {
		for _, g := range q.waiting {
			waiting.Items = append(waiting.Items, *g)
		}
		return o.form.Print(o.Out, waiting)
	}
	for _, line := range q.header(o.form.Wide()) {
		fmt.Fprintln(o.Out, line)
	}
	t, err := o.print(d, &q)
	if err != nil || !o.watch {
		return err
	}
	return (&follower{desk: d, table: t, wide: o.form.Wide(), shown: q.waiting, where: where}).run(ctx, found.ResourceVersion)
}

// print writes the table. An empty one is left out, unless rows may come.
func (o *pendingOptions) print(d *desk, q *queue) (*table.Table, error) {
	rows := make([]table.Row, 0, len(q.waiting))
	for _, g := range q.waiting {
		rows = append(rows, row(g, d, left(g, d.now), o.form.Wide()))
	}
	t := table.New(d.paint, columns(o.form.Wide(), o.watch), rows)
	if len(rows) == 0 && !o.watch {
		return t, nil
	}
	if err := t.Header(o.Out); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if err := t.Row(o.Out, r); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// columns of the queue. A table that is watched keeps room for what comes.
func columns(wide, watched bool) []table.Column {
	all := []table.Column{
		{Name: "NAMESPACE", Least: 14}, {Name: "GRANT"}, {Name: "LEFT"}, {Name: "NEEDS"}, {Name: "WHAT", Least: 32},
		{Name: "WHY", Least: 12}, {Name: "SESSION", Least: 12},
	}
	if watched {
		for i, room := range []int{9, 22, 10, 6, 40, 14, 17} {
			all[i].Room = room
		}
	}
	if wide {
		all = append(all, table.Column{Name: "USER", Least: 6}, table.Column{Name: "AGE"}, table.Column{Name: "RULE", Least: 6})
		all[0].Least, all[4].Least, all[5].Least, all[6].Least = 9, 16, 8, 7
	}
	return all
}

func row(g *v1alpha1.PermissionGrant, d *desk, left table.Cell, wide bool) table.Row {
	request := &g.Spec.Request
	reason := table.Cell{Text: why(g)}
	if rank(g) < len(feared) {
		reason.Style = terminal.Red
	}
	r := table.Row{{Text: g.Namespace}, {Text: g.Name}, left, people(g, d.now), {Text: what(g)}, reason, {Text: sessionName(g)}}
	if !wide {
		return r
	}
	var rules []string
	for i := range request.Rules {
		rules = append(rules, screened(request.Rules[i].Name))
	}
	return append(r, table.Cell{Text: screened(request.Requester.OnBehalfOf)}, table.Cell{Text: age(g, d.now)}, table.Cell{Text: strings.Join(rules, ", ")})
}

// people is how many have to approve still.
func people(g *v1alpha1.PermissionGrant, now time.Time) table.Cell {
	given, required := needed(g)
	cell := table.Cell{Text: fmt.Sprint(required)}
	switch {
	case !pendingAt(g, now):
		return table.Cell{Text: "-"}
	case given > 0:
		cell.Text = fmt.Sprintf("%d of %d", required-given, required)
	}
	if required > 1 {
		cell.Style = terminal.Amber
	}
	return cell
}

// sessionName is with its namespace where that is another than the grant's.
func sessionName(g *v1alpha1.PermissionGrant) string {
	if s := &g.Spec.Request.Session; s.Namespace != g.Namespace {
		return s.Namespace + "/" + s.Name
	}
	return g.Spec.Request.Session.Name
}
