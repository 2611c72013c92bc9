package policy_test

import (
	"fmt"
	"slices"
	"strings"
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
		Name: name, Class: rapid.SampledFrom([]policy.Class{policy.ClassAsk, policy.ClassForbidden}).Draw(t, "class"),
		Enforcement: rapid.SampledFrom([]policy.Enforcement{policy.EnforcementEnforce, policy.EnforcementEnforce, policy.EnforcementWarn, policy.EnforcementAudit}).Draw(t, "enforcement"),
		Match:       drawMatch(t), When: rapid.SampledFrom(conditions).Draw(t, "when"),
		Detail: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "detail"), Recovery: rapid.SampledFrom([]string{"", "do a"}).Draw(t, "recovery"),
	}
}

func drawPolicy(t *rapid.T, id policy.PolicyID) policy.Policy {
	p := policy.Policy{ID: id}
	p.ID.UID, p.ID.Generation = "uid-"+id.Name, 1
	for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
		p.Rules = append(p.Rules, drawRule(t, fmt.Sprintf("rule-%d", i)))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "entries") {
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

// drawSet has three cluster policies, two profiles and a namespace with a policy of its own; the baseline is the real one
// or none.
func drawSet(t *rapid.T) policy.Set {
	set := policy.Set{Baseline: policy.Policy{ID: policy.PolicyID{Kind: policy.KindBaseline, Name: "baseline", UID: "none"}}}
	if rapid.Bool().Draw(t, "real baseline") {
		loaded, err := baseline.Load(baseline.Latest)
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
	op := update(policy.Facts{})
	if rapid.Bool().Draw(t, "harmless") {
		op.Facts = harmless()
	}
	for _, s := range statements.Draw(t, "facts") {
		op.Facts.Add(s.fact, s.value)
	}
	op.ReadBy = rapid.SampledFrom([]policy.Provenance{0, 0, 0, policy.Declared, policy.Parsed}).Draw(t, "read by")
	op.Verb = rapid.SampledFrom(verbs).Draw(t, "verb")
	op.Stage = rapid.SampledFrom(stages).Draw(t, "stage")
	op.DryRun = rapid.Bool().Draw(t, "dry run")
	op.Capability = rapid.SampledFrom([]policy.Capability{policy.CapabilityExecuteLocal, policy.CapabilityExecuteLocal, policy.CapabilityPublishExternal}).Draw(t, "capability")
	op.Target = policy.Target{
		Group: rapid.SampledFrom(groups).Draw(t, "group"), Version: "v1", Resource: rapid.SampledFrom(resources).Draw(t, "resource"),
		Subresource: rapid.SampledFrom([]string{"", "", "scale"}).Draw(t, "subresource"), Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace"),
		Name: rapid.SampledFrom(names).Draw(t, "name"), Origin: rapid.SampledFrom(origins).Draw(t, "origin"),
	}
	op.Digest = rapid.SampledFrom([]string{"v1:digest", "v1:digest", "v1:digest", ""}).Draw(t, "digest")
	op.Kubernetes.Object["spec"] = map[string]any{"replicas": rapid.Int64Range(0, 5).Draw(t, "replicas")}
	if rapid.Bool().Draw(t, "is a tool call") {
		op.Tool, op.Kubernetes = "mcp:a", nil
	}
	return op
}

var sessionStates = []policy.SessionState{
	policy.SessionActive, policy.SessionActive, policy.SessionActive, policy.SessionSuspended, policy.SessionMissing,
	policy.SessionAmbiguous, policy.SessionEnded, "",
}

func drawSession(t *rapid.T) policy.SessionView {
	s := session()
	s.State = rapid.SampledFrom(sessionStates).Draw(t, "state")
	s.Namespace = rapid.SampledFrom([]string{"checkout", "checkout", "payments", "unbound", "elsewhere"}).Draw(t, "session namespace")
	s.UID = rapid.SampledFrom([]string{"uid-agent", "uid-agent", ""}).Draw(t, "session uid")
	s.Authority.Stages = some(t, "stages", stages, 4)
	if rapid.IntRange(0, 3).Draw(t, "narrow") == 0 {
		s.Authority.Kubernetes = drawMatch(t).Kubernetes
	}
	s.Deadline = rapid.SampledFrom([]time.Time{{}, now.Add(time.Second), now.Add(time.Hour), now}).Draw(t, "deadline")
	return s
}

var states = []policy.GrantState{
	policy.GrantPending, policy.GrantApproved, policy.GrantApproved, policy.GrantApproved, policy.GrantDenied, policy.GrantExpired,
	policy.GrantRevoked, policy.GrantSuperseded, policy.GrantStale, policy.GrantExhausted, "", "Other",
}

// drawGrant fits in everything unless one of its parts is drawn otherwise; odds of one in eight each.
func drawGrant(t *rapid.T, op *policy.Operation, s *policy.SessionView, identity string) *policy.Grant {
	g := &policy.Grant{
		Name: "pg-1", State: rapid.SampledFrom(states).Draw(t, "grant state"), Digest: op.Digest, Stage: op.Stage, Requester: s.Username,
		SessionUID: s.UID, Epoch: s.Epoch, PolicyIdentity: identity, Expiration: now.Add(time.Second), UsesLeft: 1, Required: 1,
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

// Proves C-1, B-1 and C-5: every operation has exactly one class and one answer, the answer names a boundary exactly when
// it prevents the operation, and a class above AUTO has a reason of that class.
func TestEveryOperationHasOneAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		engine, op, s := compile(t, drawSet(t)), drawOperation(t), drawSession(t)
		_, identity := engine.Identity(s.Namespace, op.Target.Namespace)
		if rapid.Bool().Draw(t, "has grant") {
			s.Grant = drawGrant(t, &op, &s, identity)
		}
		d := engine.Decide(op, s, now)
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
		if again := engine.Decide(op, s, now); !cmp.Equal(d, again) {
			t.Fatalf("the same question has another answer:\n%s", cmp.Diff(d, again))
		}
	})
}

// Proves C-3: the order of policies, rules and catalogue entries changes nothing in a decision.
func TestOrderNeverShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, op, s := drawSet(t), drawOperation(t), drawSession(t)
		want := compile(t, set).Decide(op, s, now)
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
		if diff := cmp.Diff(want, compile(t, shuffled).Decide(op, s, now)); diff != "" {
			t.Fatalf("another order gives another decision (-want +got):\n%s", diff)
		}
	})
}

// Proves C-3: adding a rule, to whichever policy, lowers no class.
func TestARuleNeverLowersAClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, op, s := drawSet(t), drawOperation(t), drawSession(t)
		before := compile(t, set).Decide(op, s, now)
		added := drawRule(t, "added")
		switch rapid.IntRange(0, 2).Draw(t, "where") {
		case 0:
			set.Cluster[0].Rules = append(set.Cluster[0].Rules, added)
		case 1:
			p := set.Profiles["standard"]
			p.Rules = append(p.Rules, added)
			set.Profiles["standard"] = p
		default:
			own := *set.Namespaces["payments"].Policy
			own.Rules = append(own.Rules, added)
			set.Namespaces["payments"] = policy.Namespace{Profile: "production", Policy: &own}
		}
		if after := compile(t, set).Decide(op, s, now); after.Class < before.Class {
			t.Fatalf("the added rule lowers %s to %s", before.Class, after.Class)
		}
	})
}

// Proves C-3, C-6 and G-2: a grant changes no class, never opens FORBIDDEN, and opens ASK only when everything that binds
// it fits.
func TestAGrantOpensNothingButItsOwnQuestion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		engine, op, s := compile(t, drawSet(t)), drawOperation(t), drawSession(t)
		without := engine.Decide(op, s, now)
		_, identity := engine.Identity(s.Namespace, op.Target.Namespace)
		g := drawGrant(t, &op, &s, identity)
		s.Grant = g
		with := engine.Decide(op, s, now)
		if with.Class != without.Class {
			t.Fatalf("the grant changes the class from %s to %s", without.Class, with.Class)
		}
		if with.Class == policy.ClassForbidden && with.Verdict == policy.VerdictAllow {
			t.Fatalf("the grant opens FORBIDDEN")
		}
		fits := g.State == policy.GrantApproved && g.Digest == op.Digest && g.Digest != "" && g.Stage == op.Stage && g.Requester == s.Username &&
			g.SessionUID == s.UID && s.UID != "" && g.Epoch == s.Epoch && g.PolicyIdentity == identity && now.Before(g.Expiration) && g.UsesLeft > 0
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

// Proves C-5: exactly the rules and entries whose selector fits count, however they are indexed, and each is named.
func TestExactlyTheRulesThatFitCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, op := policy.Policy{}, drawOperation(t)
		op.Facts = harmless()
		var want []string
		for i := range rapid.IntRange(1, 8).Draw(t, "rules") {
			rule := policy.Rule{Name: fmt.Sprint(i), Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: drawMatch(t)}
			p.Rules = append(p.Rules, rule)
			fits := op.Tool != "" && slices.ContainsFunc(rule.Match.Tools, func(e string) bool {
				return e == op.Tool || strings.HasSuffix(e, "*") && strings.HasPrefix(op.Tool, e[:len(e)-1])
			})
			for _, selector := range rule.Match.Kubernetes {
				fits = fits || selects(selector, &op)
			}
			if fits {
				want = append(want, "default/"+rule.Name)
			}
		}
		s := session()
		op.Capability, op.Stage = policy.CapabilityExecuteLocal, policy.StageExecute
		var got []string
		for _, detail := range compile(t, under(p)).Decide(op, s, now).Details {
			got = append(got, detail.Rule)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("rules (-want +got):\n%s", diff)
		}
	})
}
