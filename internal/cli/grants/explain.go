package grants

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

const whyLong = `Explain a grant: the class with every rule and fact behind it, where each fact comes from, who had to approve, who did and
under which policies, and what became of each use.`

const whyExamples = `  # Why it was asked, and what became of it
  kubectl stepbeyond why pg-7k2mq4xdva -n checkout`

// decisionPrefix begins the ID of a decision, as denials and disclosures show it in brackets.
const decisionPrefix = "d-"

// Why explains a grant.
func Why(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:               "why NAME",
		Short:             "Explain why something was asked, and what became of it",
		Long:              whyLong,
		Example:           whyExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(f, one, func(*v1alpha1.PermissionGrant) bool { return true }),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.Context(), f, bare(args[0]))
		},
	}
}

func explain(ctx context.Context, f *factory.Factory, name string) error {
	if strings.HasPrefix(name, decisionPrefix) {
		return usage("%s is the ID of a decision, which cannot be looked up yet because no ledger keeps decisions; name a grant, pg-...", screened(name))
	}
	d, err := open(f)
	if err != nil {
		return err
	}
	g, err := d.get(ctx, name)
	if err != nil {
		return err
	}
	v := &view{grant: g, now: d.now, paint: d.paint}
	fmt.Fprint(f.Out, v.explanation())
	return nil
}

// explanation writes the page of why.
func (v *view) explanation() string {
	g, request := v.grant, &v.grant.Spec.Request
	status := grant.Compute(g, v.now)
	p := &page{paint: v.paint, most: maxShown}
	p.title(moment(&g.CreationTimestamp)+"  ", request.Operation.Summary)
	p.section("class", "ASK: needs a person's approval; no score, mode or model changes that")
	p.section("because", reasons(request)...)
	p.styled(stateStyle(status.State), "state", fmt.Sprintf("%s (%s): %s", status.State, status.Reason, conditionMessage(&status)))
	p.section("asked by", v.who()...)
	p.section("for", fmt.Sprintf("stage %s, capability %s, question %d about %s", request.Stage, request.Operation.Capability, request.Question, request.Digest))
	p.section("needs", needs(g, nil)...)
	p.section("answers", answers(g)...)
	p.section("uses", uses(g)...)
	p.section("policy", v.policies()...)
	p.untrusted("does", request.Change)
	if len(request.Projection) > 0 {
		p.section("ignores", "not compared: "+screen.Line(strings.Join(request.Projection, ", "), maxLine))
	}
	return p.b.String()
}

// policies are those behind the approval; before it, nothing is bound.
func (v *view) policies() []string {
	status := &v.grant.Status
	if status.BoundPolicyIdentity == "" {
		return []string{"bound at the last approval"}
	}
	var bound []string
	for _, b := range status.BoundPolicies {
		name := b.Name
		if b.Namespace != "" {
			name = b.Namespace + "/" + name
		}
		bound = append(bound, fmt.Sprintf("%s %s g%d", b.Kind, screened(name), b.Generation))
	}
	return []string{strings.Join(bound, ", "), "identity " + status.BoundPolicyIdentity}
}
