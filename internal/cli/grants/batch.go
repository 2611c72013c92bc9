package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

// Lines of a section in the summary before an answer.
const maxSummary = 6

// batch is one verdict about several questions, each with the digest that was shown of it.
type batch struct {
	*desk
	verdict v1alpha1.Verdict
	reason  string
	// scope of an approval.
	scope *v1alpha1.GrantScope
	dry   bool
	yes   bool
}

// verb of the verdict.
func (b *batch) verb() string {
	if b.verdict == v1alpha1.VerdictDeny {
		return "Deny"
	}
	return "Approve"
}

func (b *batch) run(ctx context.Context, asked []*v1alpha1.PermissionGrant) error {
	if err := b.show(ctx, asked); err != nil {
		return err
	}
	chosen := asked
	if !b.yes {
		var err error
		if chosen, err = b.choose(ctx, asked); err != nil {
			return err
		}
	}
	return b.answer(ctx, asked, chosen)
}

// show says what will be answered: one question with what it does, or a line for each.
func (b *batch) show(ctx context.Context, asked []*v1alpha1.PermissionGrant) error {
	if len(asked) == 1 {
		fmt.Fprint(b.Out, b.summary(asked[0]))
		return b.showWidth(ctx, asked[0])
	}
	rows := make([]table.Row, 0, len(asked))
	for i, g := range asked {
		reason := table.Cell{Text: why(g)}
		if rank(g) < len(feared) {
			reason.Style = terminal.Red
		}
		rows = append(rows, table.Row{{Text: fmt.Sprintf("%2d", i+1)}, {Text: g.Name}, {Text: what(g)}, reason, {Text: b.width()}})
	}
	columns := []table.Column{{Name: " #"}, {Name: "GRANT"}, {Name: "WHAT", Least: 24}, {Name: "WHY", Least: 12}, {Name: "WIDTH", Least: 12}}
	return table.Write(b.Out, b.paint, columns, rows)
}

func (b *batch) width() string {
	if b.scope == nil {
		return ""
	}
	return width(b.scope)
}

// summary is what one look has to show: what it does, what else happens, the way back, why, and who.
func (b *batch) summary(g *v1alpha1.PermissionGrant) string {
	request := &g.Spec.Request
	p := &page{paint: b.paint}
	p.title("", request.Operation.Summary)
	p.matter(request, maxSummary)
	p.section("why ask", reasons(request)...)
	if said := g.Spec.RequesterComment; said != "" {
		p.section("says", quoted(said)+" (the agent's own words, not checked)")
	}
	p.section("digest", request.Digest)
	p.line("Asked by %s, %s ago.", sessionName(g), age(g, b.now))
	return p.b.String()
}

// showWidth says what an answer that is wider than the question covers now.
func (b *batch) showWidth(ctx context.Context, g *v1alpha1.PermissionGrant) error {
	if b.scope == nil || b.scope.Type == v1alpha1.ScopeExact {
		return nil
	}
	fmt.Fprintf(b.Out, "Wide: %s.\n", b.width())
	if m := b.scope.Match; m != nil && m.Name != "" {
		text, err := b.matchesNow(ctx, g, m.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.Out, "Covers: %s.\n", text)
	}
	twins, err := b.twins(ctx, g, b.scope)
	if err != nil {
		return err
	}
	if len(twins) > 0 {
		fmt.Fprintf(b.Out, "Also answers %d pending: %s.\n", len(twins), strings.Join(twins, ", "))
	}
	return nil
}

// errNo is the answer of somebody who was asked.
var errNo = errors.New("nothing was answered")

// choose asks once. Of several questions some may be taken by number.
func (b *batch) choose(ctx context.Context, asked []*v1alpha1.PermissionGrant) ([]*v1alpha1.PermissionGrant, error) {
	question := b.verb() + " this? [y/N] "
	switch {
	case len(asked) > 1:
		question = fmt.Sprintf("%s all %d, each by its own digest? [y/N/numbers] ", b.verb(), len(asked))
	case b.scope != nil && b.scope.Type == v1alpha1.ScopeExact:
		question = b.verb() + " exactly this, once? [y/N] "
	}
	fmt.Fprint(b.ErrOut, question)
	line, err := terminal.ReadLine(ctx, b.In)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w; nothing was answered", err)
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		return asked, nil
	case "", "n", "no":
		return nil, errNo
	}
	return chosen(line, asked)
}

// chosen reads numbers, separated by commas or spaces. Anything else answers nothing.
func chosen(line string, asked []*v1alpha1.PermissionGrant) ([]*v1alpha1.PermissionGrant, error) {
	var list []*v1alpha1.PermissionGrant
	if len(asked) == 1 {
		return nil, fmt.Errorf("%q is neither y nor n; %w", line, errNo)
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(asked) {
			return nil, fmt.Errorf("%q is not y, n or a number from 1 to %d; %w", word, len(asked), errNo)
		}
		if !slices.Contains(list, asked[n-1]) {
			list = append(list, asked[n-1])
		}
	}
	return list, nil
}

// answer sends an answer for each and says what came of it. One that fails holds no other back.
func (b *batch) answer(ctx context.Context, asked, chosen []*v1alpha1.PermissionGrant) error {
	var failed []string
	var errs []error
	for _, g := range asked {
		if !slices.Contains(chosen, g) {
			fmt.Fprintf(b.Out, "%s/%s left pending\n", resource, g.Name)
			continue
		}
		after, err := b.send(ctx, g, appendDecision(decision{Verdict: b.verdict, ShownDigest: g.Spec.Request.Digest, Reason: b.reason, Scope: b.scope}), b.dry)
		if err != nil {
			failed, errs = append(failed, g.Name), append(errs, err)
			continue
		}
		fmt.Fprintf(b.Out, "%s/%s %s%s\n", resource, g.Name, outcome(after, b.now), b.dryMark())
	}
	switch {
	case len(errs) == 0:
		return nil
	case len(chosen) == 1:
		return errs[0]
	}
	code := exit.Failed
	if !slices.ContainsFunc(errs, func(err error) bool { return exit.Code(err) != exit.Changed }) {
		code = exit.Changed
	}
	return exit.With(code, fmt.Errorf("%d of %d were not answered: %s\n%w", len(failed), len(chosen), strings.Join(failed, ", "), errors.Join(errs...)))
}

func (b *batch) dryMark() string {
	if b.dry {
		return " (server dry run)"
	}
	return ""
}
