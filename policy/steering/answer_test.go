package steering_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/steering"
)

func lease(holder, renewed string, annotations map[string]any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "leader", "resourceVersion": renewed, "annotations": annotations},
		"spec":     map[string]any{"holderIdentity": holder, "renewTime": renewed},
	}
}

func leaseUpdate(before, after map[string]any) *policy.Operation {
	op := write(policy.VerbUpdate, "leases", "leader")
	op.Target.Group = "coordination.k8s.io"
	op.Kubernetes = &policy.KubernetesRequest{OldObject: before, Object: after}
	return op
}

func review(group, resource string, verb policy.Verb) *policy.Operation {
	op := write(verb, resource, "")
	op.Target.Group = group
	return op
}

func dryRun(op *policy.Operation) *policy.Operation {
	op.DryRun = true
	return op
}

func under(op *policy.Operation, subresource string) *policy.Operation {
	op.Target.Subresource = subresource
	return op
}

// Proves R-6.
func TestAHoldSparesWhatChangesNothing(t *testing.T) {
	s := held(t, input(steering.TypePlan, "in-1"))
	mine := lease("me", "t1", nil)
	for name, row := range map[string]struct {
		call steering.Call
		want steering.Spare
	}{
		"a read":                                {steering.Call{Operation: write(policy.VerbRead, "pods", "web")}, steering.SpareRead},
		"a dry run":                             {steering.Call{Operation: dryRun(write(policy.VerbDelete, "pods", "web"))}, steering.SpareDryRun},
		"a question about one's own permission": {steering.Call{Operation: review("authorization.k8s.io", "selfsubjectaccessreviews", policy.VerbCreate)}, steering.SpareAccessReview},
		"a question about one's identity":       {steering.Call{Operation: review("authentication.k8s.io", "selfsubjectreviews", policy.VerbCreate)}, steering.SpareAccessReview},
		"the renewal of a Lease":                {steering.Call{Operation: leaseUpdate(mine, lease("me", "t2", nil))}, steering.SpareLeaseRenewal},
		"a catalogued verifier":                 {steering.Call{Operation: write(policy.VerbCreate, "jobs", "verify"), Role: steering.RoleVerifier}, steering.SpareVerifier},
		"the reconciliation itself":             {steering.Call{Operation: write(policy.VerbUpdate, "steeringinputs", "in-1"), Role: steering.RoleReconciliation}, steering.SpareReconciliation},
	} {
		t.Run(name+" goes on", func(t *testing.T) {
			if diff := cmp.Diff(steering.Answer{Outcome: steering.OutcomeProceed, Spared: row.want}, s.Answer(row.call)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, op := range map[string]*policy.Operation{
		"a write":                                     write(policy.VerbUpdate, "deployments", "web"),
		"a Lease that changes hands":                  leaseUpdate(mine, lease("you", "t2", nil)),
		"a Lease that carries data":                   leaseUpdate(mine, lease("me", "t2", map[string]any{"payload": "x"})),
		"a Lease that is created":                     func() *policy.Operation { op := leaseUpdate(nil, mine); op.Verb = policy.VerbCreate; return op }(),
		"a Lease whose content is not known":          leaseUpdate(nil, nil),
		"a Lease without a spec":                      leaseUpdate(mine, map[string]any{"metadata": map[string]any{}}),
		"a Lease of a request without content":        func() *policy.Operation { op := leaseUpdate(nil, nil); op.Kubernetes = nil; return op }(),
		"a subresource of a Lease":                    under(leaseUpdate(mine, lease("me", "t2", nil)), "status"),
		"a review that is updated":                    review("authorization.k8s.io", "selfsubjectaccessreviews", policy.VerbUpdate),
		"a subresource of a review":                   under(review("authorization.k8s.io", "selfsubjectaccessreviews", policy.VerbCreate), "status"),
		"another kind of the group of access reviews": review("authorization.k8s.io", "roles", policy.VerbCreate),
		"a review of another's token":                 review("authentication.k8s.io", "tokenreviews", policy.VerbCreate),
		"a review of another group":                   review("acme.example", "selfsubjectaccessreviews", policy.VerbCreate),
	} {
		t.Run(name+" is held, with the input's ID", func(t *testing.T) {
			got := s.Answer(steering.Call{Operation: op})
			if got.Outcome != steering.OutcomeHeld || got.Input.ID != "in-1" || got.Hold.State != steering.HoldHeld || got.Spared != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Proves R-1.
func TestAMemberOfAStartedActionCompletes(t *testing.T) {
	op := write(policy.VerbUpdate, "deployments", "web")
	s := must(t, steering.State{Epoch: 1, ListedEpoch: 1}, steering.ActionStarted{Action: action("batch", 1, op.Digest, "")})
	stop := input(steering.TypeSafety, "stop")
	stop.Constraints = steering.Constraints{Activity: steering.ActivitySuspend, Forbid: []steering.Selector{{Resources: []string{"*"}}}}
	s = must(t, s, steered(stop))
	unnamed := write(policy.VerbUpdate, "deployments", "web")
	unnamed.Digest = ""
	for name, row := range map[string]struct {
		call steering.Call
		want steering.Outcome
	}{
		"a member goes on": {steering.Call{Operation: op, ActionID: "batch"}, steering.OutcomeProceed},
		"the same operation outside the batch does not":      {steering.Call{Operation: op}, steering.OutcomeConstrained},
		"another operation under the batch's name does not":  {steering.Call{Operation: write(policy.VerbUpdate, "deployments", "api"), ActionID: "batch"}, steering.OutcomeConstrained},
		"an operation without a digest does not":             {steering.Call{Operation: unnamed, ActionID: "batch"}, steering.OutcomeConstrained},
		"a member of a batch that never started, it neither": {steering.Call{Operation: op, ActionID: "other"}, steering.OutcomeConstrained},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Answer(row.call).Outcome; got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// Proves R-3.
func TestASuspensionIsReportedBeforeAQuestion(t *testing.T) {
	stop := input(steering.TypeSafety, "stop")
	stop.Constraints.Activity = steering.ActivitySuspend
	s := must(t, held(t, input(steering.TypePlan, "in-1")), steered(stop))
	got := s.Answer(steering.Call{Operation: write(policy.VerbUpdate, "deployments", "web")})
	if got.Outcome != steering.OutcomeHeld || got.Input.ID != "stop" || !got.Hold.Suspended {
		t.Errorf("%+v", got)
	}
	// The question can still be answered meanwhile.
	s = must(t, s, answer("in-1", steering.StatusApplied))
	if got := s.Hold(); got.Input.ID != "stop" {
		t.Errorf("%+v", got)
	}
}

func tool(name string, verb policy.Verb) *policy.Operation {
	return &policy.Operation{Capability: policy.CapabilityExecuteLocal, Verb: verb, Tool: name}
}

// Proves R-6.
func TestAViolatedConstraintIsNamedByInputAndPath(t *testing.T) {
	web := func() *policy.Operation { return write(policy.VerbUpdate, "deployments", "web") }
	constraints := map[string]steering.Constraints{
		"capability": {ForbidCapabilities: []policy.Capability{policy.CapabilityPublishExternal, policy.CapabilityExecuteLocal}},
		"forbid":     {Forbid: []steering.Selector{{Resources: []string{"secrets"}}, {Resources: []string{"deployments"}, Names: []string{"web", "api-*"}, Verbs: []policy.Verb{policy.VerbUpdate}}}},
		"anyverb":    {Forbid: []steering.Selector{{Groups: []string{"*"}}}},
		"group":      {Forbid: []steering.Selector{{Groups: []string{"apps"}, Resources: []string{"deployments/*"}}}},
		"tools":      {Forbid: []steering.Selector{{Tools: []string{"mcp:git/*", "*/push"}}}},
		"reads":      {Forbid: []steering.Selector{{Tools: []string{"*"}, Verbs: []policy.Verb{policy.VerbRead}}}},
		"narrow":     {NarrowTo: []steering.Selector{{Groups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Names: []string{"web"}}}},
		"verbs":      {NarrowTo: []steering.Selector{{Verbs: []policy.Verb{policy.VerbUpdate}}}},
		"budget":     {Budgets: steering.Budgets{MaxMutations: count(10)}},
	}
	for name, row := range map[string]struct {
		constraint string
		call       steering.Call
		want       string
	}{
		"a capability taken away":                              {"capability", steering.Call{Operation: web()}, "constraints.forbidCapabilities[1]"},
		"a capability taken away, also for a read":             {"capability", steering.Call{Operation: write(policy.VerbRead, "pods", "web")}, "constraints.forbidCapabilities[1]"},
		"a name forbidden":                                     {"forbid", steering.Call{Operation: web()}, "constraints.forbid[1]"},
		"a prefix forbidden":                                   {"forbid", steering.Call{Operation: write(policy.VerbUpdate, "deployments", "api-2")}, "constraints.forbid[1]"},
		"a name left open could be the forbidden one":          {"forbid", steering.Call{Operation: write(policy.VerbUpdate, "deployments", "")}, "constraints.forbid[1]"},
		"a dry run of the forbidden":                           {"forbid", steering.Call{Operation: dryRun(web())}, "constraints.forbid[1]"},
		"a verifier that does the forbidden":                   {"forbid", steering.Call{Operation: web(), Role: steering.RoleVerifier}, "constraints.forbid[1]"},
		"another name is free":                                 {"forbid", steering.Call{Operation: write(policy.VerbUpdate, "deployments", "cart")}, ""},
		"another verb is free":                                 {"forbid", steering.Call{Operation: write(policy.VerbDelete, "deployments", "web")}, ""},
		"another resource is free":                             {"forbid", steering.Call{Operation: write(policy.VerbUpdate, "jobs", "web")}, ""},
		"a subresource is another resource":                    {"forbid", steering.Call{Operation: under(web(), "scale")}, ""},
		"no verb means every write":                            {"anyverb", steering.Call{Operation: web()}, "constraints.forbid[0]"},
		"no verb means no read":                                {"anyverb", steering.Call{Operation: write(policy.VerbRead, "pods", "web")}, ""},
		"a group fits no tool call":                            {"anyverb", steering.Call{Operation: tool("mcp:git/commit", policy.VerbCreate)}, ""},
		"any subresource":                                      {"group", steering.Call{Operation: under(web(), "scale")}, "constraints.forbid[0]"},
		"any subresource is not the resource":                  {"group", steering.Call{Operation: web()}, ""},
		"a tool forbidden by prefix":                           {"tools", steering.Call{Operation: tool("mcp:git/commit", policy.VerbCreate)}, "constraints.forbid[0]"},
		"a star in front is a name like any other":             {"tools", steering.Call{Operation: tool("mcp:hg/push", policy.VerbCreate)}, ""},
		"a tool selector fits no Kubernetes request":           {"tools", steering.Call{Operation: web()}, ""},
		"a read forbidden by name":                             {"reads", steering.Call{Operation: tool("mcp:mail/list", policy.VerbRead)}, "constraints.forbid[0]"},
		"inside the narrowing":                                 {"narrow", steering.Call{Operation: under(web(), "scale")}, ""},
		"outside the narrowing by name":                        {"narrow", steering.Call{Operation: write(policy.VerbUpdate, "deployments", "api")}, "constraints.narrowTo"},
		"outside the narrowing by group":                       {"narrow", steering.Call{Operation: review("acme.example", "deployments", policy.VerbUpdate)}, "constraints.narrowTo"},
		"a name left open is outside the narrowing":            {"narrow", steering.Call{Operation: write(policy.VerbCreate, "deployments", "")}, "constraints.narrowTo"},
		"a tool call is outside a narrowing to objects":        {"narrow", steering.Call{Operation: tool("mcp:git/commit", policy.VerbCreate)}, "constraints.narrowTo"},
		"a read is not narrowed":                               {"narrow", steering.Call{Operation: write(policy.VerbRead, "pods", "db")}, ""},
		"a dry run is not narrowed":                            {"narrow", steering.Call{Operation: dryRun(write(policy.VerbDelete, "pods", "db"))}, ""},
		"a narrowing to a verb":                                {"verbs", steering.Call{Operation: write(policy.VerbDelete, "pods", "db")}, "constraints.narrowTo"},
		"a tool call inside a narrowing to a verb":             {"verbs", steering.Call{Operation: tool("mcp:git/commit", policy.VerbUpdate)}, ""},
		"a budget that is spent":                               {"budget", steering.Call{Operation: web(), Mutations: 10}, "constraints.budgets.maxMutations"},
		"a budget with one write left":                         {"budget", steering.Call{Operation: web(), Mutations: 9}, ""},
		"a read costs no budget":                               {"budget", steering.Call{Operation: write(policy.VerbRead, "pods", "web"), Mutations: 10}, ""},
		"the reconciliation passes a capability taken away":    {"capability", steering.Call{Operation: web(), Role: steering.RoleReconciliation}, ""},
		"nothing is taken away by a constraint that is absent": {"", steering.Call{Operation: web()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(steering.TypeScope, "in-1")
			in.Constraints = constraints[row.constraint]
			unanswered := held(t, in)
			// Constraints hold whatever the answer was, and waiting does not lift them.
			for status, s := range map[steering.Status]steering.State{
				"":                                unanswered,
				steering.StatusApplied:            must(t, unanswered, answer("in-1", steering.StatusApplied)),
				steering.StatusNotApplicable:      must(t, unanswered, answer("in-1", steering.StatusNotApplicable)),
				steering.StatusNeedsClarification: must(t, unanswered, answer("in-1", steering.StatusNeedsClarification)),
			} {
				got := s.Answer(row.call)
				if got.Constraint != row.want || (got.Outcome == steering.OutcomeConstrained) != (row.want != "") {
					t.Errorf("answered %q: %s %q, want %q", status, got.Outcome, got.Constraint, row.want)
				}
				if row.want != "" && got.Input.ID != "in-1" {
					t.Errorf("the constraint is not told to be of in-1: %+v", got)
				}
			}
		})
	}
}

func TestBudgetsAndStrictScopeJoinOverAllInputs(t *testing.T) {
	on, off := input(steering.TypePriority, "on"), input(steering.TypeScope, "off")
	on.Constraints = steering.Constraints{StrictScope: steering.ScopeActivate, Budgets: steering.Budgets{MaxMutations: count(10)}}
	off.Constraints = steering.Constraints{StrictScope: steering.ScopeRelease, Budgets: steering.Budgets{MaxMutations: count(20), MaxChildSessions: count(1)}}
	on.Expiration = after(100)
	s := steering.State{}
	if s.StrictScope() != nil {
		t.Error("nobody said anything about strict scope")
	}
	s = must(t, s, steered(on))
	if got := s.StrictScope(); got == nil || got.ID != "on" {
		t.Errorf("%+v", got)
	}
	s = must(t, s, steered(off))
	if got := s.StrictScope(); got == nil || got.ID != "off" {
		t.Errorf("the release of a person is newer: %+v", got)
	}
	if diff := cmp.Diff(steering.Budgets{MaxMutations: count(10), MaxChildSessions: count(1)}, s.Budgets()); diff != "" {
		t.Error(diff)
	}
	s = must(t, s, steering.Expired{ID: "on", Time: after(100)})
	if diff := cmp.Diff(steering.Budgets{MaxMutations: count(20), MaxChildSessions: count(1)}, s.Budgets()); diff != "" {
		t.Errorf("an expired budget counts: %s", diff)
	}
}
