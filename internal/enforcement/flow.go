package enforcement

import (
	"context"
	"fmt"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrol "k8s.io/client-go/applyconfigurations/flowcontrol/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// PriorityLevel is the PriorityLevelConfiguration of governed identities.
	PriorityLevel = "stepbeyond-agents"
	// FlowAgents is the FlowSchema that leads governed identities there.
	FlowAgents = "stepbeyond-agents"
	// FlowExempt is the FlowSchema that leads exempt ServiceAccounts to the level of ordinary ones. That is where they
	// would be without FlowAgents, unless another FlowSchema with a precedence from 950 to 8999 names them: FlowExempt
	// comes before it. One with a precedence below 949 still leads them.
	FlowExempt = "stepbeyond-exempt"

	// The API server's own FlowSchemas for its components, nodes and kube-system end at 900; the one for all
	// ServiceAccounts is at 9,000. So what keeps the cluster alive is never even compared with our lists, and no FlowSchema
	// for a team's ServiceAccounts can take its agents out of their level.
	precedenceExempt = 949
	precedenceAgents = 950

	// levelOfServiceAccounts is where the API server leads ServiceAccounts that no other FlowSchema names.
	levelOfServiceAccounts = "workload-low"
)

// FlowControl keeps requests of governed identities in seats of their own, so that those who wait for a slow webhook
// occupy nobody else's. There is a priority level, and a FlowSchema for the exempt and one for the governed identities.
// A FlowSchema cannot make exceptions and lists ServiceAccounts by namespace, so the exempt ones are led away before. The
// canary is not in the level: a proof must not wait behind agents. Equal input gives equal bytes. Errors are those of
// Scope.Expressions.
func FlowControl(s Scope) ([]Object, error) {
	if _, err := s.shards(); err != nil {
		return nil, fmt.Errorf("scope of the flow control: %w", err)
	}
	var governed, exempt []*flowcontrol.SubjectApplyConfiguration
	for _, user := range sortedUnique(s.Users) {
		if user == flowcontrolv1.NameAll {
			continue // it would stand for everybody
		}
		governed = append(governed, flowcontrol.Subject().WithKind(flowcontrolv1.SubjectKindUser).
			WithUser(flowcontrol.UserSubject().WithName(user)))
	}
	for _, namespace := range sortedUnique(s.Namespaces) {
		if namespace != CanaryNamespace {
			governed = append(governed, serviceAccounts(namespace, flowcontrolv1.NameAll))
		}
	}
	for _, account := range slices.Compact(slices.SortedFunc(slices.Values(s.Exempt), ServiceAccount.compare)) {
		if slices.Contains(s.Namespaces, account.Namespace) {
			exempt = append(exempt, serviceAccounts(account.Namespace, account.Name))
		}
	}
	return []Object{
		priorityLevel(),
		flowSchema(FlowExempt, levelOfServiceAccounts, precedenceExempt, exempt),
		flowSchema(FlowAgents, PriorityLevel, precedenceAgents, governed),
	}, nil
}

// priorityLevel has the seats of agents. An API server with the usual limits has 600 seats, shared among levels of 245
// shares in all, of which ordinary ServiceAccounts have 100.
func priorityLevel() Object {
	return flowcontrol.PriorityLevelConfiguration(PriorityLevel).WithLabels(labels()).
		WithSpec(flowcontrol.PriorityLevelConfigurationSpec().WithType(flowcontrolv1.PriorityLevelEnablementLimited).
			WithLimited(flowcontrol.LimitedPriorityLevelConfiguration().
				// A tenth of the ServiceAccounts' share: 23 seats. Answers take milliseconds, so that is thousands a second.
				WithNominalConcurrencyShares(10).
				// Half is lent while agents are idle, so that others lose little by this level. The other half is there at
				// once when agents come, because lent seats return only with the next adjustment, up to 10 s later.
				WithLendablePercent(50).
				// Nothing is borrowed: a request that waits for a webhook keeps its seat for seconds.
				WithBorrowingLimitPercent(0).
				WithLimitResponse(flowcontrol.LimitResponse().WithType(flowcontrolv1.LimitResponseTypeQueue).
					// Each identity has 4 of the queues, so one that floods fills its own and leaves most of the others' to
					// them; at most 16 x 50 requests wait in memory, and what comes then is told to retry.
					WithQueuing(flowcontrol.QueuingConfiguration().WithQueues(16).WithHandSize(4).WithQueueLengthLimit(50)))))
}

// flowSchema without subjects has no rule and leads nobody anywhere; it stays, so that what it led before is let go.
func flowSchema(name, level string, precedence int32, subjects []*flowcontrol.SubjectApplyConfiguration) Object {
	spec := flowcontrol.FlowSchemaSpec().
		WithPriorityLevelConfiguration(flowcontrol.PriorityLevelConfigurationReference().WithName(level)).
		WithMatchingPrecedence(precedence).
		WithDistinguisherMethod(flowcontrol.FlowDistinguisherMethod().WithType(flowcontrolv1.FlowDistinguisherMethodByUserType))
	if len(subjects) > 0 {
		spec.WithRules(flowcontrol.PolicyRulesWithSubjects().WithSubjects(subjects...).
			WithResourceRules(flowcontrol.ResourcePolicyRule().
				WithVerbs(flowcontrolv1.VerbAll).WithAPIGroups(flowcontrolv1.APIGroupAll).WithResources(flowcontrolv1.ResourceAll).
				WithClusterScope(true).WithNamespaces(flowcontrolv1.NamespaceEvery)).
			WithNonResourceRules(flowcontrol.NonResourcePolicyRule().
				WithVerbs(flowcontrolv1.VerbAll).WithNonResourceURLs(flowcontrolv1.NonResourceAll)))
	}
	return flowcontrol.FlowSchema(name).WithLabels(labels()).WithSpec(spec)
}

func serviceAccounts(namespace, name string) *flowcontrol.SubjectApplyConfiguration {
	return flowcontrol.Subject().WithKind(flowcontrolv1.SubjectKindServiceAccount).
		WithServiceAccount(flowcontrol.ServiceAccountSubject().WithNamespace(namespace).WithName(name))
}

// Limit writes what FlowControl returns by server-side apply: the level first, because a FlowSchema without its level is
// skipped, then the exemptions, so that no exempt ServiceAccount is led to the agents' level meanwhile.
func Limit(ctx context.Context, c client.Client, s Scope) error {
	objects, err := FlowControl(s)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.Apply(ctx, object, FieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", *object.GetKind(), *object.GetName(), err)
		}
	}
	return nil
}
