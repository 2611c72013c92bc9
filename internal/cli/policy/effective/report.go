package effective

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/installed"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

// Report is what counts in a namespace; with -o it is written as it is.
type Report struct {
	Namespace string `json:"namespace"`
	// Profile is the value of the namespace's label.
	Profile string `json:"profile"`
	// FloorEnforcement of the profile: Audit refuses nothing.
	FloorEnforcement v1alpha1.FloorEnforcement `json:"floorEnforcement,omitempty"`
	Layers           []Layer                   `json:"layers"`
	ModelTier        v1alpha1.ModelTier        `json:"modelTier,omitempty"`
	InitiativeMode   v1alpha1.InitiativeMode   `json:"initiativeMode,omitempty"`
	// Questions are the bounds that the policies join to.
	Questions *Questions `json:"questions,omitempty"`
	// Templates are the session templates; Template is the one that examples are decided for.
	Templates []Template `json:"templates,omitempty"`
	Template  string     `json:"template,omitempty"`
	Examples  []Decided  `json:"examples,omitempty"`
	// Problems keep a policy from coming into force.
	Problems []string `json:"problems,omitempty"`
}

// Layer is one policy that counts.
type Layer struct {
	From string `json:"from"`
	// Object is the kind and the name; of the baseline its version.
	Object           string         `json:"object"`
	Rules            int            `json:"rules"`
	CatalogueEntries int            `json:"catalogueEntries"`
	Requirements     int            `json:"requirements,omitempty"`
	Enforcement      map[string]int `json:"enforcement,omitempty"`
	// Compiled says where the rules are enforced, as the status says it.
	Compiled map[string]int `json:"compiled,omitempty"`
	// Webhook and Floor are the state of the enforcement, of cluster policies.
	Webhook v1alpha1.EnforcementState `json:"webhook,omitempty"`
	Floor   v1alpha1.EnforcementState `json:"floor,omitempty"`

	name string
}

// Template is a session template.
type Template struct {
	Name           string `json:"name"`
	ServiceAccount string `json:"serviceAccount"`
}

// Questions bound the life of a question.
type Questions struct {
	DecideWithinSeconds  int32  `json:"decideWithinSeconds,omitempty"`
	UseWithinSeconds     int32  `json:"useWithinSeconds,omitempty"`
	AskAgainAfterSeconds int32  `json:"askAgainAfterSeconds,omitempty"`
	MaxPendingPerSession *int32 `json:"maxPendingPerSession,omitempty"`
}

// explain says what counts in a governed namespace.
func explain(p *installed.Policies, namespace, template string, now time.Time) (*Report, error) {
	settings, _ := p.Snapshot.Namespace(namespace)
	made := &Report{Namespace: namespace, Profile: settings.Profile, ModelTier: settings.ModelTier, InitiativeMode: settings.InitiativeMode}
	for i := range p.Cluster {
		if p.Cluster[i].Name != settings.Governing {
			continue
		}
		for _, binding := range p.Cluster[i].Spec.Profiles {
			if binding.Name == settings.Profile {
				made.FloorEnforcement = binding.FloorEnforcement
			}
		}
	}
	if err := made.addLayers(p, &settings); err != nil {
		return nil, err
	}
	for i := range settings.Templates {
		made.Templates = append(made.Templates, Template{settings.Templates[i].Name, settings.Templates[i].ServiceAccountName})
	}
	one, err := chosen(settings.Templates, template)
	if err != nil {
		return nil, err
	}
	if one == nil || settings.Policy == nil {
		return made, nil
	}
	made.Template = one.Name
	if made.Examples, err = decide(p.Snapshot, namespace, one, now); err != nil {
		return nil, err
	}
	for i := range made.Examples {
		if a := &made.Examples[i].approvals; made.Examples[i].class == policy.ClassAsk {
			made.Questions = &Questions{a.DecideWithinSeconds, a.UseWithinSeconds, a.AskAgainAfterSeconds, a.MaxPendingPerSession}
			break
		}
	}
	return made, nil
}

func (r *Report) addLayers(p *installed.Policies, settings *policystore.Namespace) error {
	embedded, err := baseline.Load(p.Snapshot.BaselineVersion)
	if err != nil {
		return fmt.Errorf("load the baseline: %w", err)
	}
	first := layer("baseline", p.Snapshot.BaselineVersion, "baseline "+p.Snapshot.BaselineVersion, &embedded)
	for i := range p.Cluster {
		if e := p.Cluster[i].Status.Enforcement; e != nil {
			first.Webhook, first.Floor = worse(first.Webhook, e.Webhook), worse(first.Floor, e.Floor)
		}
	}
	r.Layers = append(r.Layers, first)
	for i := range p.Cluster {
		object := &p.Cluster[i]
		converted := policystore.FromClusterAgentPolicy(object)
		made := layer("cluster", object.Name, "ClusterAgentPolicy "+object.Name, &converted)
		made.Compiled = compiled(object.Status.RuleStatuses)
		r.Layers = append(r.Layers, made)
		r.problems(made.Object, p.Snapshot.Problems(object.UID))
	}
	if settings.Policy == nil {
		r.Problems = append(r.Problems, fmt.Sprintf("every governed write is refused: no valid AgentPolicy is bound to profile %q, or the namespace's own is not valid", settings.Profile))
	} else {
		converted := policystore.FromAgentPolicy(settings.Policy, true)
		made := layer("profile", settings.Profile, "AgentPolicy "+settings.Policy.Namespace+"/"+settings.Policy.Name, &converted)
		r.Layers = append(r.Layers, made)
	}
	if own := p.Own(r.Namespace); own != nil {
		converted := policystore.FromAgentPolicy(own, false)
		converted.Catalogue = slices.DeleteFunc(converted.Catalogue, func(e policy.CatalogueEntry) bool { return !settings.MayCatalogue(e.Match.Tools) })
		made := layer("namespace", own.Namespace+"/"+own.Name, "AgentPolicy "+own.Namespace+"/"+own.Name, &converted)
		r.Layers = append(r.Layers, made)
		r.problems(made.Object, policystore.CheckAgentPolicy(own))
	}
	return nil
}

func (r *Report) problems(object string, found []policy.Problem) {
	for _, problem := range found {
		r.Problems = append(r.Problems, fmt.Sprintf("%s does not come into force as it is: spec.%v", object, problem))
	}
}

func layer(from, name, object string, p *policy.Policy) Layer {
	made := Layer{From: from, Object: object, name: name, Rules: len(p.Rules), CatalogueEntries: len(p.Catalogue), Requirements: len(p.Approvals.Requirements)}
	for i := range p.Rules {
		if made.Enforcement == nil {
			made.Enforcement = map[string]int{}
		}
		made.Enforcement[string(p.Rules[i].Enforcement)]++
	}
	return made
}

func compiled(statuses []v1alpha1.RuleStatus) map[string]int {
	var counted map[string]int
	for i := range statuses {
		if counted == nil {
			counted = map[string]int{}
		}
		counted[string(statuses[i].CompiledTo)]++
	}
	return counted
}

// states of the enforcement, the best first.
var states = []v1alpha1.EnforcementState{"", v1alpha1.EnforcementInForce, v1alpha1.EnforcementRepairing, v1alpha1.EnforcementLost}

func worse(a, b v1alpha1.EnforcementState) v1alpha1.EnforcementState {
	if cmp.Compare(slices.Index(states, a), slices.Index(states, b)) < 0 {
		return b
	}
	return a
}

// needs says in words whom an ASK needs. Anybody is among those that a group or a larger number asks for already.
func needs(requirements []Approvers) string {
	var most int32
	for i := range requirements {
		if len(requirements[i].Groups) > 0 || requirements[i].Required > most {
			most = max(most, requirements[i].Required)
		}
	}
	var parts []string
	for i := range requirements {
		a := &requirements[i]
		var part string
		switch {
		case len(a.Groups) > 0:
			part = fmt.Sprintf("%d of %s", a.Required, strings.Join(a.Groups, " or "))
		case a.Required < most || a.Required == most && slices.ContainsFunc(requirements, func(o Approvers) bool { return len(o.Groups) > 0 && o.Required >= a.Required }):
			continue
		case a.Required == 1:
			part = "1 person"
		default:
			part = fmt.Sprintf("%d people", a.Required)
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
