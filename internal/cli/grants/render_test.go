package grants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/policy"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// golden compares with testdata/NAME.golden, or writes it when UPDATE_GOLDEN is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// question is one about a volume claim, asked at noon.
func question(changes ...func(*v1alpha1.PermissionGrant)) *v1alpha1.PermissionGrant {
	g := &v1alpha1.PermissionGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "pg-7k2mq4xdva", UID: "u-1", CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.PermissionGrantSpec{Request: v1alpha1.PermissionRequest{
			Type: v1alpha1.RequestExact, Question: 1, MaxUses: 1, Stage: v1alpha1.StageExecute,
			Digest:    "v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9",
			Session:   v1alpha1.GrantSession{Namespace: "checkout", Name: "fix-latency-9c1f0", UID: "s-1", Epoch: 1},
			Requester: v1alpha1.Requester{Username: "system:serviceaccount:checkout:agent", PodName: "fix-latency-x7k2p", Adapter: "kubectl", OnBehalfOf: "anna@acme.example"},
			Operation: v1alpha1.GrantOperation{
				Capability: v1alpha1.CapabilityExecuteLocal, Verb: v1alpha1.VerbDelete, Summary: "delete persistentvolumeclaims checkout/data-postgres-0",
				Target: v1alpha1.GrantTarget{Version: "v1", Resource: "persistentvolumeclaims", Namespace: "checkout", Name: "data-postgres-0", UID: "2f1c9a58"},
			},
			Change: []string{"options: propagationPolicy=Background, gracePeriodSeconds=0", "object: 20Gi, storageClass fast, created 2026-03-02 by argocd"},
			Effects: []string{
				"PersistentVolume pvc-2f1c9a58 has reclaimPolicy Delete: 20Gi are destroyed",
				"used by 1 running Pod: postgres-0; deletion waits until that Pod is gone",
			},
			Undo: []string{"none for the volume", "VolumeSnapshot checkout/postgres-nightly of 2026-11-30T02:00:04Z is ready"},
			Facts: []v1alpha1.GrantFact{
				{Fact: v1alpha1.FactDestructive, Value: v1alpha1.FactPresent, Provenance: v1alpha1.ProvenanceParsed, Why: "verb delete on a kind that holds data"},
				{Fact: v1alpha1.FactReversible, Value: v1alpha1.FactAbsent, Provenance: v1alpha1.ProvenanceAuthoritative, Why: "reclaimPolicy Delete"},
			},
			Rules:        []v1alpha1.GrantRule{{Name: "baseline/destructive", Class: v1alpha1.ClassAsk, Reason: "Destructive"}},
			Requirements: []v1alpha1.GrantRequirement{{Name: "standard/one-person", Required: 1}, {Name: "standard/data-loss", Required: 2}},
			DecideByTime: metav1.NewTime(noon.Add(16 * time.Hour)), UseWithinSeconds: 14400,
		}},
	}
	for _, change := range changes {
		change(g)
	}
	return g
}

func decided(by string, verdict v1alpha1.Verdict, at time.Time, scope v1alpha1.GrantScope, reason string) func(*v1alpha1.PermissionGrant) {
	return func(g *v1alpha1.PermissionGrant) {
		g.Spec.Decisions = append(g.Spec.Decisions, v1alpha1.GrantDecision{
			Approver: by, Verdict: verdict, ShownDigest: g.Spec.Request.Digest, Reason: reason, Scope: scope,
			DecidedTime: new(metav1.NewTime(at)), GrantUID: g.UID, PolicyIdentity: "v1:" + strings.Repeat("0", 64),
		})
	}
}

// hostile is everything that an agent can have written, as bad as the schema lets it be, or worse.
func hostile(g *v1alpha1.PermissionGrant) {
	evil := "\u202etnemyolped eteled\u202c \u200bzero\u2060width \ufeff\x1b[2J\x1b]0;title\x07 \\u202e a\u0301\u0301\u0301\u0301\u0301\u0301 \xff\n  digest   v1:0000\r\n  You can approve."
	request := &g.Spec.Request
	g.Spec.RequesterComment = "Please approve. " + evil
	request.Change = []string{evil, strings.Repeat("long ", 400)}
	for i := range 62 {
		request.Change = append(request.Change, fmt.Sprintf("line %d", i))
	}
	request.Effects, request.Undo = []string{evil}, []string{evil}
	request.Facts[0].Why = evil
	request.Rules[0].Name = "platform/" + evil
	request.Requirements[0].Name = evil
	request.Requirements = append(request.Requirements, v1alpha1.GrantRequirement{Name: "groups", Required: 1, ApproverGroups: []string{evil, "acme:sre"}})
	request.Requester.OnBehalfOf, request.Requester.PodName, request.Requester.Adapter, request.Requester.Username = evil, evil, evil, evil
	request.Operation.Summary = evil
	request.Operation.Target.Name = evil
	request.Projection = []string{evil}
	decided(evil, v1alpha1.VerdictApprove, noon.Add(time.Minute), v1alpha1.GrantScope{
		Type: v1alpha1.ScopeTimeBoxed, DurationSeconds: 600, Uses: 3, Match: &v1alpha1.ScopeMatch{Name: evil, Commands: []string{evil}},
	}, evil)(g)
	g.Status.Uses = []v1alpha1.GrantUse{{Index: 1, Outcome: v1alpha1.UseUnknown, Attempts: []v1alpha1.UseAttempt{{}}, ReservedTime: metav1.NewTime(noon), Effect: evil, DecisionID: evil}}
	g.Status.BoundPolicies = []v1alpha1.PolicyReference{{Kind: "AgentPolicy", Name: evil}}
	g.Status.BoundPolicyIdentity = "v1:" + strings.Repeat("0", 64)
}

// expectPlain fails for a character that has no form of its own or moves another, and for a line that is too wide.
func expectPlain(t *testing.T, text string) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		marks, width := 0, 0
		for _, r := range line {
			width++
			if r == ' ' || unicode.IsGraphic(r) && !unicode.In(r, unicode.Cf, unicode.Zs) {
				if marks++; !unicode.Is(unicode.M, r) {
					marks = 0
				}
				if marks > 4 {
					t.Errorf("line %d has a tower of marks: %q", i+1, line)
				}
				continue
			}
			t.Errorf("line %d holds %q: %q", i+1, r, line)
		}
		if width > table.Width {
			t.Errorf("line %d has %d characters: %q", i+1, width, line)
		}
	}
}

// Proves G-1, K-4.
func TestAQuestionIsShownAsItsApproverNeedsIt(t *testing.T) {
	anna := &reader{username: "ben@acme.example", groups: []string{"acme:sre"}, approves: true}
	approve := func(by string, scope v1alpha1.GrantScope) func(*v1alpha1.PermissionGrant) {
		return decided(by, v1alpha1.VerdictApprove, noon.Add(10*time.Minute), scope, "")
	}
	exact := v1alpha1.GrantScope{Type: v1alpha1.ScopeExact}
	views := map[string]*view{
		"pending": {grant: question(func(g *v1alpha1.PermissionGrant) {
			g.Spec.RequesterComment = "PVC is full; recreating it with 40Gi."
			g.Status.Similar = &v1alpha1.SimilarGrants{Denied: 1, SinceTime: metav1.NewTime(noon.Add(-90 * 24 * time.Hour))}
		}), you: anna, session: map[policy.GrantState]int{policy.GrantExhausted: 2, policy.GrantDenied: 1}},
		"half":     {grant: question(approve("ben@acme.example", exact)), you: anna, session: map[policy.GrantState]int{}},
		"approved": {grant: question(approve("ben@acme.example", exact), approve("carla@acme.example", exact)), you: anna},
		"denied":   {grant: question(decided("carla@acme.example", v1alpha1.VerdictDeny, noon.Add(time.Minute), v1alpha1.GrantScope{}, "Expand it in place.")), you: anna},
		"expired":  {grant: question(), now: noon.Add(17 * time.Hour)},
		"hostile":  {grant: question(hostile), you: anna},
	}
	for name, v := range views {
		t.Run(name, func(t *testing.T) {
			if v.now.IsZero() {
				v.now = noon.Add(14 * time.Minute)
			}
			got := v.render()
			expectPlain(t, got)
			golden(t, "show-"+name, got)
			got = v.explanation()
			expectPlain(t, got)
			golden(t, "why-"+name, got)
			b := &batch{desk: &desk{now: v.now}, verdict: v1alpha1.VerdictApprove}
			got = b.summary(v.grant)
			expectPlain(t, got)
			golden(t, "approve-"+name, got)
		})
	}
}

// Proves K-4.
func TestTheQueueSortsByRiskAndFitsWhateverIsAsked(t *testing.T) {
	d := &desk{now: noon.Add(time.Hour)}
	q := &queue{now: d.now}
	with := func(name string, fact v1alpha1.Fact, required int32, minutes int) *v1alpha1.PermissionGrant {
		return question(func(g *v1alpha1.PermissionGrant) {
			g.Name, g.CreationTimestamp = name, metav1.NewTime(noon.Add(time.Duration(minutes)*time.Minute))
			g.Spec.Request.Facts = []v1alpha1.GrantFact{{Fact: fact, Value: v1alpha1.FactPresent, Provenance: v1alpha1.ProvenanceParsed}}
			g.Spec.Request.Requirements = []v1alpha1.GrantRequirement{{Name: "standard/people", Required: required}}
		})
	}
	for i := range 100 { // of mixed risk, newest first
		fact := []v1alpha1.Fact{v1alpha1.FactExternal, v1alpha1.FactCost, v1alpha1.FactSecurity, v1alpha1.FactDestructive, v1alpha1.FactCredentials}[i%5]
		q.waiting = append(q.waiting, with(fmt.Sprintf("pg-%03d", i), fact, int32(1+i%2), 100-i))
	}
	q.waiting = append(q.waiting, question(hostile, func(g *v1alpha1.PermissionGrant) { g.Name, g.Spec.Decisions = "pg-hostile", nil }))
	for i := range 3 {
		verdict := []v1alpha1.Verdict{v1alpha1.VerdictApprove, v1alpha1.VerdictDeny, v1alpha1.VerdictApprove}[i]
		reason := map[v1alpha1.Verdict]v1alpha1.ConditionReason{v1alpha1.VerdictApprove: v1alpha1.ReasonRequirementsMet, v1alpha1.VerdictDeny: v1alpha1.ReasonApproverDenied}[verdict]
		q.ended = append(q.ended, question(decided("ben", verdict, noon.Add(time.Duration(6*(i+1))*time.Minute), v1alpha1.GrantScope{}, ""), func(g *v1alpha1.PermissionGrant) {
			g.Spec.Decisions[0].ApproverGroups = []string{"acme:sre"}
			g.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.ConditionDecided), Status: metav1.ConditionTrue, Reason: string(reason)}}
		}))
	}
	for _, wide := range []bool{false, true} {
		t.Run(fmt.Sprintf("wide %t", wide), func(t *testing.T) {
			var b strings.Builder
			for _, line := range q.header(wide) {
				fmt.Fprintln(&b, line)
			}
			waiting := slices.SortedFunc(slices.Values(q.waiting), byRisk)
			var rows []table.Row
			for _, g := range waiting {
				rows = append(rows, row(g, d, left(g, d.now), wide))
			}
			if err := table.Write(&b, terminal.Paint{}, columns(wide, false), rows); err != nil {
				t.Fatal(err)
			}
			expectPlain(t, b.String())
			golden(t, fmt.Sprintf("pending-%t", wide), b.String())
		})
	}
}

// Proves K-4.
func TestTheHeaderSaysOnlyWhatIsKnown(t *testing.T) {
	long := question(func(g *v1alpha1.PermissionGrant) { g.CreationTimestamp = metav1.NewTime(noon.Add(-30 * time.Hour)) })
	long.Spec.Request.DecideByTime = metav1.NewTime(noon.Add(time.Hour))
	for want, q := range map[string]*queue{
		"Nothing is pending.": {now: noon},
		"1 pending, oldest 1d6h. Last 24 h: 0 approved, 0 denied. -o wide: user, age, rule.":                        {now: noon, waiting: []*v1alpha1.PermissionGrant{long}},
		"Nothing is pending. Last 24 h: 0 approved, 0 denied.":                                                      {now: noon, ended: []*v1alpha1.PermissionGrant{long}},
		"1 pending, oldest 14m. Since 14m ago (oldest grant kept): 0 approved, 0 denied. -o wide: user, age, rule.": {now: noon.Add(14 * time.Minute), waiting: []*v1alpha1.PermissionGrant{question()}},
	} {
		if diff := cmp.Diff([]string{want}, q.header(false)); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
	}
}

// Proves G-2.
func TestAWideAnswerCoversWhatTheEngineSaysItDoes(t *testing.T) {
	exec := func(pod string, words ...string) *v1alpha1.PermissionGrant {
		return question(func(g *v1alpha1.PermissionGrant) {
			operation := &g.Spec.Request.Operation
			operation.Verb, operation.Command = v1alpha1.VerbConnect, words
			operation.Target = v1alpha1.GrantTarget{Version: "v1", Resource: "pods", Subresource: "exec", Namespace: "checkout", Name: pod}
		})
	}
	scope := &v1alpha1.GrantScope{Type: v1alpha1.ScopeTimeBoxed, DurationSeconds: 60, Match: &v1alpha1.ScopeMatch{Name: "web-*", Commands: []string{"ss -*"}}}
	asked := exec("web-1", "ss", "-lntp")
	for _, tt := range []struct {
		name  string
		other *v1alpha1.PermissionGrant
		want  bool
	}{
		{"another pod and another argument", exec("web-2", "ss", "-a"), true},
		{"a pod beyond the pattern", exec("api-2", "ss", "-a"), false},
		{"one more argument", exec("web-2", "ss", "-a", "-b"), false},
		{"another program", exec("web-2", "sh"), false},
		{"another session", func() *v1alpha1.PermissionGrant {
			g := exec("web-2", "ss", "-a")
			g.Spec.Request.Session.UID = "s-2"
			return g
		}(), false},
		{"another reason", func() *v1alpha1.PermissionGrant {
			g := exec("web-2", "ss", "-a")
			g.Spec.Request.Facts = append(g.Spec.Request.Facts, v1alpha1.GrantFact{Fact: v1alpha1.FactSecurity, Value: v1alpha1.FactPresent})
			return g
		}(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := covers(asked, scope, tt.other, noon); got != tt.want {
				t.Errorf("covered: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestNothingOfAWrappedLineIsLost(t *testing.T) {
	for _, line := range []string{"", "short", strings.Repeat("word  ", 60), strings.Repeat("x", 300), "é " + strings.Repeat("é", 200)} {
		pieces := wrap(line, 50)
		if diff := cmp.Diff(line, strings.Join(pieces, "")); diff != "" {
			t.Errorf("wrapped (-want +got):\n%s", diff)
		}
	}
}
