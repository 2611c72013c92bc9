package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/prose"
	"stepbeyond.dev/stepbeyond/policy"
)

// mostKinds is how many kinds are named.
const mostKinds = 5

// kindAsked is one kind that agents were asked about because nobody has catalogued it.
type kindAsked struct {
	group, resource string
	verbs           []string
	questions       int
}

// uncatalogued finds the kinds that cost people the most questions for want of a catalogue entry. Only grants that are
// still there count, and only kinds that no entry knows by now.
func (w *world) uncatalogued() []Finding {
	kinds := map[[2]string]*kindAsked{}
	for i := range w.grants {
		request := &w.grants[i].Spec.Request
		t := &request.Operation.Target
		if !slices.ContainsFunc(request.Rules, func(r v1alpha1.GrantRule) bool { return r.Reason == policy.CodeUncatalogued }) ||
			!w.isUncatalogued(w.grants[i].Namespace, &request.Operation) {
			continue
		}
		resource := t.Resource
		if t.Subresource != "" {
			resource += "/" + t.Subresource
		}
		key := [2]string{t.Group, resource}
		if kinds[key] == nil {
			kinds[key] = &kindAsked{group: t.Group, resource: resource}
		}
		k := kinds[key]
		k.questions++
		if verb := string(request.Operation.Verb); !slices.Contains(k.verbs, verb) {
			k.verbs = append(k.verbs, verb)
		}
	}
	sorted := make([]*kindAsked, 0, len(kinds))
	for _, k := range kinds {
		slices.Sort(k.verbs)
		sorted = append(sorted, k)
	}
	slices.SortFunc(sorted, func(a, b *kindAsked) int {
		return cmp.Or(cmp.Compare(b.questions, a.questions), cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource))
	})
	var found []Finding
	for _, k := range sorted[:min(len(sorted), mostKinds)] {
		found = append(found, k.finding())
	}
	return found
}

// isUncatalogued asks the engine whether the policies of today still know nothing of the kind.
func (w *world) isUncatalogued(namespace string, asked *v1alpha1.GrantOperation) bool {
	t := &asked.Target
	decision := w.policies.Snapshot.Engine.Decide(policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.Verb(asked.Verb),
		Target: policy.Target{
			Group: t.Group, Version: t.Version, Resource: t.Resource, Subresource: t.Subresource, Namespace: t.Namespace, Name: t.Name,
			Origin: policy.OriginUnknown,
		},
		Kubernetes: &policy.KubernetesRequest{},
	}, policy.SessionView{Namespace: namespace}, w.now)
	return slices.ContainsFunc(decision.Details, func(d policy.Detail) bool { return d.Code == policy.CodeUncatalogued })
}

func (k *kindAsked) name() string {
	if k.group == "" {
		return k.resource
	}
	return k.resource + "." + k.group
}

func (k *kindAsked) finding() Finding {
	f := Finding{
		Severity: Info, Check: CheckUncatalogued, Object: k.name(),
		Message: fmt.Sprintf("%s about %s of a kind that nobody has catalogued.", sentence(prose.Count(k.questions, "question", "questions")), strings.Join(k.verbs, ", ")),
		Advice:  "If what this says of the kind is true, put it under spec.catalogue of a ClusterAgentPolicy; a harm belongs under present.",
		Entry:   k.entry(),
	}
	if f.Entry == "" {
		f.Advice = "What happens behind a connection is not seen, so it goes on asking."
	}
	return f
}

// harmless is what an ordinary write of a plain kind does not do.
const harmless = "[External, Sends, Cost, Credentials, Security, Unbounded, EscalatesAuthority, ExfiltratesSecret, PersistsSensitiveMemory, Ambiguous%s]"

// entry is what the baseline says of ordinary kinds, for the verbs that were asked about: an own object is free, a change
// of somebody else's is disclosed, and a deletion of it asks.
func (k *kindAsked) entry() string {
	b := &strings.Builder{}
	add := func(suffix, selectors, present, absent string) {
		fmt.Fprintf(b, "- name: %s-%s\n  match:\n    kubernetes:\n%s  facts:\n    present: [%s]\n    absent: %s\n",
			strings.ReplaceAll(k.resource, "/", "-"), suffix, selectors, present, fmt.Sprintf(harmless, absent))
	}
	selector := func(verb, origins string) string {
		if origins != "" {
			origins = ", origins: [" + origins + "]"
		}
		return fmt.Sprintf("    - {groups: [%q], resources: [%q], verbs: [%s]%s}\n", k.group, k.resource, verb, origins)
	}
	own := ""
	for _, verb := range k.verbs {
		switch policy.Verb(verb) {
		case policy.VerbCreate:
			own += selector(verb, "")
		case policy.VerbUpdate, policy.VerbDelete:
			own += selector(verb, string(policy.OriginThisSession))
		}
	}
	if own == "" {
		return ""
	}
	add("own", own, "Reversible", ", Destructive, MaterialAssumption")
	foreign := fmt.Sprintf("%s, %s, %s, %s", policy.OriginOtherSession, policy.OriginPerson, policy.OriginController, policy.OriginUnknown)
	if slices.Contains(k.verbs, string(policy.VerbUpdate)) {
		add("foreign", selector("update", foreign), "Reversible, MaterialAssumption", ", Destructive")
	}
	if slices.Contains(k.verbs, string(policy.VerbDelete)) {
		add("deleted", selector("delete", foreign), "Destructive", "")
	}
	return b.String()
}
