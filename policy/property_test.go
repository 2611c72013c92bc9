package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

// Small vocabularies, so that selectors often meet operations.
var (
	groups     = []string{"", "apps", "acme.example"}
	resources  = []string{"configmaps", "deployments", "widgets"}
	selected   = []string{"*", "configmaps", "deployments", "deployments/scale", "deployments/*", "widgets"}
	names      = []string{"", "web", "web-1", "prod"}
	verbs      = []policy.Verb{policy.VerbCreate, policy.VerbUpdate, policy.VerbDelete, policy.VerbConnect}
	origins    = []policy.Origin{policy.OriginThisSession, policy.OriginOtherSession, policy.OriginPerson, policy.OriginController, policy.OriginUnknown}
	namespaces = []string{"", "checkout", "payments", "elsewhere"}
	stages     = []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish}
	// The last two err on most objects.
	conditions = []string{"", "true", "false", "request.name == 'web'", "target.origin == 'ThisSession'", "object.spec.replicas > 2", "oldObject.missing == 1"}
	// Most policies have few rules and entries, so that five of them together do not forbid nearly everything.
	howMany = []int{0, 0, 0, 0, 1, 1, 2, 4}
)

func some[T any](t *rapid.T, label string, values []T, most int) []T {
	return rapid.SliceOfN(rapid.SampledFrom(values), 0, most).Draw(t, label)
}

func drawMatch(t *rapid.T) policy.Match {
	var m policy.Match
	for range rapid.IntRange(0, 3).Draw(t, "selectors") {
		m.Kubernetes = append(m.Kubernetes, policy.KubernetesSelector{
			Groups: some(t, "groups", append([]string{"*"}, groups...), 2), Resources: some(t, "resources", selected, 2),
			Names: some(t, "names", []string{"*", "web*", "web", "prod"}, 2), Verbs: some(t, "verbs", verbs, 2), Origins: some(t, "origins", origins, 2),
		})
	}
	m.Tools = some(t, "tools", []string{"*", "mcp:*", "mcp:a", "mcp:b"}, 1)
	return m
}

func drawRule(t *rapid.T, name string) policy.Rule {
	return policy.Rule{
		Name: name, Class: rapid.SampledFrom([]policy.Class{policy.ClassAsk, policy.ClassAsk, policy.ClassForbidden}).Draw(t, "class"),
		Enforcement: rapid.SampledFrom([]policy.Enforcement{policy.EnforcementEnforce, policy.EnforcementEnforce, policy.EnforcementWarn, policy.EnforcementAudit}).Draw(t, "enforcement"),
		Match:       drawMatch(t), When: rapid.SampledFrom(conditions).Draw(t, "when"),
		Detail: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "detail"), Recovery: rapid.SampledFrom([]string{"", "do a"}).Draw(t, "recovery"),
	}
}

func drawPolicy(t *rapid.T, id policy.PolicyID) policy.Policy {
	p := policy.Policy{ID: id}
	p.ID.UID, p.ID.Generation = "uid-"+id.Name, 1
	for i := range rapid.SampledFrom(howMany).Draw(t, "rules") {
		p.Rules = append(p.Rules, drawRule(t, fmt.Sprintf("rule-%d", i)))
	}
	for i := range rapid.SampledFrom(howMany).Draw(t, "entries") {
		p.Catalogue = append(p.Catalogue, policy.CatalogueEntry{
			Name: fmt.Sprintf("entry-%d", i), Match: drawMatch(t), When: rapid.SampledFrom(conditions).Draw(t, "when"),
			Present: some(t, "present", policy.AllFacts(), 5), Absent: some(t, "absent", policy.AllFacts(), 14),
			Effect: rapid.SampledFrom([]policy.Effect{"", "", "", policy.EffectRead}).Draw(t, "effect"),
			Detail: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "detail"), Recovery: rapid.SampledFrom([]string{"", "do a", "do b"}).Draw(t, "recovery"),
		})
	}
	if rapid.Bool().Draw(t, "has requirement") {
		p.Approvals.Requirements = []policy.Requirement{{Name: "r", Required: 2, Facts: some(t, "facts", policy.AllFacts(), 2), Resources: some(t, "resources", selected, 1)}}
	}
	return p
}

// realBaseline is read once; nothing writes to it.
var realBaseline = sync.OnceValues(func() (policy.Policy, error) { return baseline.Load(baseline.Latest) })

// drawSet has three cluster policies, two profiles and a namespace with a policy of its own; the baseline is the real one
// or none.
func drawSet(t *rapid.T) policy.Set {
	set := policy.Set{Baseline: policy.Policy{ID: policy.PolicyID{Kind: policy.KindBaseline, Name: "baseline", UID: "none"}}}
	if rapid.Bool().Draw(t, "real baseline") {
		loaded, err := realBaseline()
		if err != nil {
			t.Fatal(err)
		}
		set.Baseline = loaded
	}
	for i := range 3 {
		set.Cluster = append(set.Cluster, drawPolicy(t, policy.PolicyID{Kind: "ClusterAgentPolicy", Name: fmt.Sprintf("cluster-%d", i)}))
	}
	own := drawPolicy(t, policy.PolicyID{Kind: "AgentPolicy", Namespace: "payments", Name: "default"})
	set.Profiles = map[string]policy.Policy{
		"standard":   drawPolicy(t, policy.PolicyID{Kind: policy.KindProfile, Namespace: "stepbeyond-system", Name: "standard"}),
		"production": drawPolicy(t, policy.PolicyID{Kind: policy.KindProfile, Namespace: "stepbeyond-system", Name: "production"}),
	}
	set.Namespaces = map[string]policy.Namespace{"checkout": {Profile: "standard"}, "payments": {Profile: "production", Policy: &own}, "unbound": {Profile: "none"}}
	return set
}

func drawOperation(t *rapid.T) policy.Operation {
	op := update(drawFacts(t))
	op.ReadBy = rapid.SampledFrom([]policy.Provenance{0, 0, 0, policy.Declared, policy.Parsed}).Draw(t, "read by")
	op.Verb = rapid.SampledFrom(verbs).Draw(t, "verb")
	op.Stage = rapid.SampledFrom(stages).Draw(t, "stage")
	op.DryRun = rapid.IntRange(0, 3).Draw(t, "dry run") == 0
	op.Capability = rapid.SampledFrom([]policy.Capability{policy.CapabilityExecuteLocal, policy.CapabilityExecuteLocal, policy.CapabilityPublishExternal}).Draw(t, "capability")
	op.Target = policy.Target{
		Group: rapid.SampledFrom(groups).Draw(t, "group"), Version: "v1", Resource: rapid.SampledFrom(resources).Draw(t, "resource"),
		Subresource: rapid.SampledFrom([]string{"", "", "scale"}).Draw(t, "subresource"), Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace"),
		Name: rapid.SampledFrom(names).Draw(t, "name"), Origin: rapid.SampledFrom(origins).Draw(t, "origin"),
	}
	op.Optional = rapid.IntRange(0, 3).Draw(t, "optional") == 0
	op.Spared = rapid.IntRange(0, 7).Draw(t, "spared") == 0
	op.Digest = rapid.SampledFrom([]string{"v1:digest", "v1:digest", "v1:digest", ""}).Draw(t, "digest")
	op.Kubernetes.Object["spec"] = map[string]any{"replicas": rapid.Int64Range(0, 5).Draw(t, "replicas")}
	if rapid.Bool().Draw(t, "is a tool call") {
		op.Tool, op.Kubernetes = "mcp:a", nil
	}
	return op
}

var sessionStates = []policy.SessionState{
	policy.SessionActive, policy.SessionActive, policy.SessionActive, policy.SessionSuspended, policy.SessionSuspended, policy.SessionSuspended,
	policy.SessionMissing, policy.SessionAmbiguous, policy.SessionEnded, "",
}

// drawSession may do everything in half of the draws, and is steered in half of them.
func drawSession(t *rapid.T) policy.SessionView {
	s := session()
	s.Authority.Capabilities = append(s.Authority.Capabilities, policy.CapabilityPublishExternal)
	if rapid.Bool().Draw(t, "is narrow") {
		narrow(t, &s)
	}
	if rapid.Bool().Draw(t, "is steered") {
		steer(t, &s)
	}
	return s
}

func narrow(t *rapid.T, s *policy.SessionView) {
	s.State = rapid.SampledFrom(sessionStates).Draw(t, "state")
	s.Namespace = rapid.SampledFrom([]string{"checkout", "checkout", "checkout", "checkout", "checkout", "payments", "payments", "payments", "payments", "unbound", "elsewhere"}).Draw(t, "session namespace")
	s.UID = rapid.SampledFrom([]string{"uid-agent", "uid-agent", "uid-agent", ""}).Draw(t, "session uid")
	if rapid.Bool().Draw(t, "narrow capabilities") {
		s.Authority.Capabilities = []policy.Capability{policy.CapabilityExecuteLocal}
	}
	if rapid.Bool().Draw(t, "narrow stages") {
		s.Authority.Stages = some(t, "stages", stages, 4)
	}
	if rapid.IntRange(0, 7).Draw(t, "narrow") == 0 {
		s.Authority.Kubernetes = drawMatch(t).Kubernetes
	}
	s.Deadline = rapid.SampledFrom([]time.Time{{}, {}, now.Add(time.Second), now.Add(time.Second), now.Add(time.Hour), now.Add(time.Hour), now.Add(time.Hour), now}).Draw(t, "deadline")
}

func steer(t *rapid.T, s *policy.SessionView) {
	s.StrictScope = rapid.IntRange(0, 2).Draw(t, "strict scope") == 0
	if rapid.Bool().Draw(t, "has a hold") {
		*s = held(*s)
	}
	if rapid.IntRange(0, 5).Draw(t, "has a constraint") == 5 {
		s.Constraint = &policy.Constraint{Name: "plan", Path: "constraints.narrowTo"}
	}
}

var states = []policy.GrantState{
	policy.GrantPending, policy.GrantApproved, policy.GrantApproved, policy.GrantApproved, policy.GrantDenied, policy.GrantExpired,
	policy.GrantRevoked, policy.GrantSuperseded, policy.GrantStale, policy.GrantExhausted, "", "Other",
}

// drawGrant fits in everything, in half of the draws unless one of its parts is drawn otherwise; odds of one in eight each.
func drawGrant(t *rapid.T, op *policy.Operation, s *policy.SessionView, identity string) *policy.Grant {
	g := &policy.Grant{
		Name: "pg-1", State: rapid.SampledFrom(states).Draw(t, "grant state"), Digest: op.Digest, Stage: op.Stage, Requester: s.Username,
		SessionUID: s.UID, Epoch: s.Epoch, PolicyIdentity: identity, Expiration: now.Add(time.Second), UsesLeft: 1, Required: 1,
	}
	if rapid.Bool().Draw(t, "fits") {
		if rapid.Bool().Draw(t, "is approved") {
			g.State = policy.GrantApproved
		}
		return g
	}
	for _, spoil := range []func(){
		func() { g.Digest = "v1:other" }, func() { g.Digest = "" }, func() { g.Stage = "other" }, func() { g.Requester = "other" },
		func() { g.SessionUID = "other" }, func() { g.Epoch++ }, func() { g.PolicyIdentity = "" }, func() { g.Expiration = now },
		func() { g.Expiration = time.Time{} }, func() { g.UsesLeft = 0 }, func() { g.UsesLeft = -1 },
	} {
		if rapid.IntRange(0, 7).Draw(t, "spoil") == 0 {
			spoil()
		}
	}
	return g
}

// question is everything that a decision depends on but the time.
type question struct {
	set     policy.Set
	engine  *policy.Engine
	op      policy.Operation
	session policy.SessionView
}

func (q *question) decide() policy.Decision { return q.engine.Decide(q.op, q.session, now) }

// identity of the policies that a grant for the question is bound to.
func (q *question) identity() string {
	_, identity := q.engine.Identity(q.session.Namespace, q.op.Target.Namespace)
	return identity
}

// drawQuestion has a grant in half of the draws.
func drawQuestion(t *rapid.T) question {
	q := question{set: drawSet(t), op: drawOperation(t), session: drawSession(t)}
	q.engine = compile(t, q.set)
	if rapid.Bool().Draw(t, "has grant") {
		q.session.Grant = drawGrant(t, &q.op, &q.session, q.identity())
	}
	return q
}

// edited is a set in which one policy is another; the given set stays as it is.
func edited(set policy.Set, name string, change func(*policy.Policy)) policy.Set {
	set.Cluster, set.Profiles, set.Namespaces = slices.Clone(set.Cluster), maps.Clone(set.Profiles), maps.Clone(set.Namespaces)
	changed := func(p policy.Policy) policy.Policy {
		p.Rules = slices.Clone(p.Rules)
		change(&p)
		return p
	}
	switch name {
	case "first", "last":
		i := map[string]int{"first": 0, "last": len(set.Cluster) - 1}[name]
		set.Cluster[i] = changed(set.Cluster[i])
	case "standard", "production":
		set.Profiles[name] = changed(set.Profiles[name])
	default:
		own := changed(*set.Namespaces[name].Policy)
		set.Namespaces[name] = policy.Namespace{Profile: set.Namespaces[name].Profile, Policy: &own}
	}
	return set
}

// editable are the policies that edited knows: two for all, two profiles and one of a namespace.
var editable = []string{"first", "last", "standard", "production", "payments"}

// Proves C-1, B-1 and C-5: every operation has exactly one class and one answer, the answer names a boundary exactly when
// it prevents the operation, and a class above AUTO has a reason of that class.
func TestEveryOperationHasOneAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		d, identity := q.decide(), q.identity()
		if d.Class < policy.ClassAuto || d.Class > policy.ClassForbidden {
			t.Fatalf("class %d is none", d.Class)
		}
		if !slices.Contains([]policy.Verdict{policy.VerdictAllow, policy.VerdictDeny, policy.VerdictPending, policy.VerdictHeld}, d.Verdict) || d.Reason == "" {
			t.Fatalf("verdict %q with reason %q is no answer", d.Verdict, d.Reason)
		}
		if allowed, free := d.Verdict == policy.VerdictAllow, d.Boundary == policy.BoundaryNone; allowed != free {
			t.Fatalf("verdict %s for %s has boundary %q", d.Verdict, d.Reason, d.Boundary)
		}
		if d.Class > policy.ClassAuto && (len(d.Details) == 0 || d.Details[0].Class != d.Class) {
			t.Fatalf("class %s has no reason of that class first: %+v", d.Class, d.Details)
		}
		if bound := d.AskNew || d.Grant != nil; d.PolicyIdentity != identity && (bound || d.PolicyIdentity != "") {
			t.Fatalf("identity %q differs from that of the namespaces, %s", d.PolicyIdentity, identity)
		}
	})
}

// Proves C-3: the order of policies, rules and catalogue entries changes nothing in a decision.
func TestOrderNeverShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		set, want := q.set, q.decide()
		shuffle := func(p policy.Policy) policy.Policy {
			p.Rules = rapid.Permutation(p.Rules).Draw(t, "rules")
			p.Catalogue = rapid.Permutation(p.Catalogue).Draw(t, "entries")
			return p
		}
		shuffled := set
		shuffled.Baseline = shuffle(set.Baseline)
		shuffled.Cluster = nil
		for _, p := range rapid.Permutation(set.Cluster).Draw(t, "cluster") {
			shuffled.Cluster = append(shuffled.Cluster, shuffle(p))
		}
		shuffled.Profiles = map[string]policy.Policy{"standard": shuffle(set.Profiles["standard"]), "production": shuffle(set.Profiles["production"])}
		if diff := cmp.Diff(want, compile(t, shuffled).Decide(q.op, q.session, now)); diff != "" {
			t.Fatalf("another order gives another decision (-want +got):\n%s", diff)
		}
	})
}

// drawTightened is a question before and after a rule was added to one policy, any one of them.
func drawTightened(t *rapid.T) (before, after question) {
	before = drawQuestion(t)
	after = before
	added := drawRule(t, "added")
	if rapid.IntRange(0, 2).Draw(t, "for everything") > 0 {
		added.Match = policy.Match{Kubernetes: []policy.KubernetesSelector{{}}, Tools: []string{"*"}}
	}
	after.set = edited(before.set, rapid.SampledFrom(editable).Draw(t, "where"), func(p *policy.Policy) { p.Rules = append(p.Rules, added) })
	after.engine = compile(t, after.set)
	return before, after
}

// Proves C-3: adding a rule, to whichever policy, lowers no class.
func TestARuleNeverLowersAClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawTightened(t)
		if without, with := before.decide().Class, after.decide().Class; with < without {
			t.Fatalf("the added rule lowers %s to %s", without, with)
		}
	})
}

// drawGranted is a question, often one that needs a grant, its answer without a grant, and a grant that was given for it
// or for something else.
func drawGranted(t *rapid.T) (q question, without policy.Decision, g *policy.Grant) {
	q = drawQuestion(t)
	q.session.Grant = nil
	if rapid.IntRange(0, 2).Draw(t, "needs a grant") == 0 {
		q.op.Facts = harmless()
		q.op.Facts[policy.Cost] = policy.FactValue{}
	}
	without = q.decide()
	q.session.Grant = drawGrant(t, &q.op, &q.session, q.identity())
	return q, without, q.session.Grant
}

// binds says in the plainest way when a grant is good for a question.
func binds(g *policy.Grant, q *question) bool {
	op, s := &q.op, &q.session
	return g.State == policy.GrantApproved && g.Digest == op.Digest && g.Digest != "" && g.Stage == op.Stage && g.Requester == s.Username &&
		g.SessionUID == s.UID && s.UID != "" && g.Epoch == s.Epoch && g.PolicyIdentity == q.identity() && now.Before(g.Expiration) && g.UsesLeft > 0
}

// Proves C-3, C-6 and G-2: a grant changes no class, never opens FORBIDDEN, and opens ASK only when everything that binds
// it fits.
func TestAGrantOpensNothingButItsOwnQuestion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, without, g := drawGranted(t)
		with, fits := q.decide(), binds(g, &q)
		if with.Class != without.Class {
			t.Fatalf("the grant changes the class from %s to %s", without.Class, with.Class)
		}
		if with.Class == policy.ClassForbidden && with.Verdict == policy.VerdictAllow {
			t.Fatalf("the grant opens FORBIDDEN")
		}
		if opened := with.Verdict == policy.VerdictAllow && without.Verdict != policy.VerdictAllow; opened && !fits {
			t.Fatalf("a grant that does not fit is used: %+v", g)
		}
		if with.Reason == policy.ReasonGranted && !fits {
			t.Fatalf("a grant that does not fit is named as the reason: %+v", g)
		}
		if fits && with.Class == policy.ClassAsk && without.Reason == policy.ReasonPermissionPending && with.Reason != policy.ReasonGranted {
			t.Fatalf("a grant that fits is refused: %s", with.Reason)
		}
	})
}

// Proves G-2: a grant without a digest is for nothing, not for whatever has none either.
func TestAGrantWithoutADigestOpensNothing(t *testing.T) {
	rule := policy.Rule{Name: "ask", Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: everything()}
	engine, op, s := compile(t, under(policy.Policy{Rules: []policy.Rule{rule}})), update(harmless()), session()
	_, identity := engine.Identity("checkout", "checkout")
	s.Grant = &policy.Grant{
		Name: "pg-1", State: policy.GrantApproved, Digest: op.Digest, Stage: op.Stage, Requester: s.Username, SessionUID: s.UID, Epoch: s.Epoch,
		PolicyIdentity: identity, Expiration: now.Add(time.Second), UsesLeft: 1,
	}
	if d := engine.Decide(op, s, now); d.Reason != policy.ReasonGranted {
		t.Fatalf("answer %s %s, want Allow Granted", d.Verdict, d.Reason)
	}
	op.Digest, s.Grant.Digest = "", ""
	if d := engine.Decide(op, s, now); d.Verdict == policy.VerdictAllow {
		t.Errorf("answer %s %s, want a refusal", d.Verdict, d.Reason)
	}
}

// selects says in the plainest way what a selector means.
func selects(s policy.KubernetesSelector, op *policy.Operation) bool {
	t := &op.Target
	any := func(list []string, fits func(entry string) bool) bool {
		return len(list) == 0 || slices.ContainsFunc(list, fits)
	}
	path := t.Resource
	if t.Subresource != "" {
		path += "/" + t.Subresource
	}
	return op.Kubernetes != nil &&
		any(s.Groups, func(e string) bool { return e == "*" || e == t.Group }) &&
		any(s.Resources, func(e string) bool { return e == "*" || e == path || e == t.Resource+"/*" && t.Subresource != "" }) &&
		any(s.Names, func(e string) bool {
			return e == "*" || t.Name != "" && (e == t.Name || strings.HasSuffix(e, "*") && strings.HasPrefix(t.Name, e[:len(e)-1]))
		}) &&
		(len(s.Verbs) == 0 || slices.Contains(s.Verbs, op.Verb)) && (len(s.Origins) == 0 || slices.Contains(s.Origins, t.Origin))
}

// drawSelected is an operation, the rules that are asked about it, and the names of those whose selector fits.
func drawSelected(t *rapid.T) (op policy.Operation, rules []policy.Rule, fit []string) {
	op = drawOperation(t)
	op.Facts = harmless()
	op.Capability, op.Stage = policy.CapabilityExecuteLocal, policy.StageExecute
	for i := range rapid.IntRange(1, 8).Draw(t, "rules") {
		rule := policy.Rule{Name: fmt.Sprint(i), Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: drawMatch(t)}
		rules = append(rules, rule)
		fits := op.Tool != "" && slices.ContainsFunc(rule.Match.Tools, func(e string) bool {
			return e == op.Tool || strings.HasSuffix(e, "*") && strings.HasPrefix(op.Tool, e[:len(e)-1])
		})
		for _, selector := range rule.Match.Kubernetes {
			fits = fits || selects(selector, &op)
		}
		if fits {
			fit = append(fit, "default/"+rule.Name)
		}
	}
	return op, rules, fit
}

// Proves C-5: exactly the rules and entries whose selector fits count, however they are indexed, and each is named.
func TestExactlyTheRulesThatFitCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op, rules, want := drawSelected(t)
		var got []string
		for _, detail := range compile(t, under(policy.Policy{Rules: rules})).Decide(op, session(), now).Details {
			got = append(got, detail.Rule)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("rules (-want +got):\n%s", diff)
		}
	})
}
