package enforcement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"pgregory.net/rapid"
)

// longNamespaces have 63 characters each, the most that a namespace can have, and differ at their end.
func longNamespaces(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%05d", strings.Repeat("n", 57), i)
	}
	return list
}

// largeScope is what requirement K-9 asks for.
var largeScope = Scope{
	Namespaces: longNamespaces(5000), Users: []string{"oidc:release-notes-agent", "zoe"},
	Exempt: []ServiceAccount{{longNamespaces(1)[0], "controller"}, {longNamespaces(5000)[4999], "controller"}},
}

// matcherOf decides as a webhook entry or a policy with these conditions does.
func matcherOf(conditions []*admissionregistration.MatchConditionApplyConfiguration) matchconditions.Matcher {
	return matchconditions.NewMatcher(evaluatorOf(conditions), nil, "webhook", "validating", "governed")
}

func evaluatorOf(conditions []*admissionregistration.MatchConditionApplyConfiguration) cel.ConditionEvaluator {
	var accessors []cel.ExpressionAccessor
	for _, c := range conditions {
		accessors = append(accessors, &matchconditions.MatchCondition{Name: *c.Name, Expression: *c.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	return compiler.CompileCondition(accessors, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
}

func write(caller user.Info) *admission.VersionedAttributes {
	return reviews(caller)["create of an empty ConfigMap"]
}

// governs is the definition of a scope, without shards.
func (s Scope) governs(username string, credential bool) bool {
	account, ok := parseServiceAccount(username)
	switch {
	case slices.Contains(s.Users, username):
		return true
	case !ok || account.Namespace != CanaryNamespace && !slices.Contains(s.Namespaces, account.Namespace):
		return false
	default:
		return !credential || !slices.Contains(s.Exempt, account)
	}
}

var (
	drawnNamespaces = rapid.StringMatching(`[a-c]([-a-c0]{0,3}[a-c])?`)
	drawnUsers      = rapid.OneOf(rapid.StringMatching(`[a-z~]{1,3}`), rapid.SampledFrom([]string{"żółw", "🐢", `"] || true`, "sys", "system", "tom", "\u2028"}))
	drawnAccounts   = rapid.Custom(func(t *rapid.T) ServiceAccount {
		return ServiceAccount{drawnNamespaces.Draw(t, "namespace"), rapid.StringMatching(`[a-c](\.[a-c])?`).Draw(t, "name")}
	})
	drawnScopes = rapid.Custom(func(t *rapid.T) Scope {
		return Scope{
			Namespaces: rapid.SliceOfN(drawnNamespaces, 0, 12).Draw(t, "namespaces"), Users: rapid.SliceOfN(drawnUsers, 0, 6).Draw(t, "users"),
			Exempt: rapid.SliceOfN(drawnAccounts, 0, 6).Draw(t, "exempt"),
		}
	})
)

// normal is the scope as it is read back.
func (s Scope) normal() Scope { return must(cut(s.withCanary().groups(), 1<<30)[0].scope()) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Every entry is in exactly one shard, the ranges follow each other and leave nobody out, and the API server finds all
// expressions true for exactly the identities that the scope names: its members, their neighbors in the order, and others.
// Proves K-2 and K-9.
func TestShardsAreDisjointAndTheirUnionIsTheScope(t *testing.T) {
	most := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawnScopes.Draw(t, "scope")
		parts := cut(s.withCanary().groups(), rapid.IntRange(400, 520).Draw(t, "bytes of a shard"))
		most = max(most, len(parts))
		before := ""
		var whole shard
		for i, part := range parts {
			if part.from != before || (part.before == "") != (i == len(parts)-1) || part.before != "" && part.before <= part.from {
				t.Fatalf("shard %d of %d has range [%q, %q) after %q", i, len(parts), part.from, part.before, before)
			}
			before = part.before
			whole.users, whole.namespaces, whole.exempt = append(whole.users, part.users...), append(whole.namespaces, part.namespaces...), append(whole.exempt, part.exempt...)
		}
		for _, list := range [][]string{whole.users, whole.namespaces, whole.exempt} {
			if len(sortedUnique(list)) != len(list) {
				t.Fatalf("an entry is in two shards: %q", list)
			}
		}
		if diff := cmp.Diff(s.normal(), must(whole.sorted().scope())); diff != "" {
			t.Fatalf("union of the shards (-scope +shards):\n%s", diff)
		}
		judgedAsDefined(t, s, parts)
	})
	if most < 4 {
		t.Errorf("no scope had more than %d shards", most)
	}
}

func judgedAsDefined(t *rapid.T, s Scope, parts shards) {
	governed := matcherOf(parts.conditions(Governed, ""))
	callers := []string{"", "ben", "system:apiserver", "system:node:a", "system:serviceaccount:kube-system:job-controller", canaryAccount.Username(), "\U0010FFFF"}
	for _, entry := range slices.Concat(s.Users, rapid.SliceOfN(drawnUsers, 3, 3).Draw(t, "other users")) {
		callers = append(callers, entry, entry+"x", entry[:len(entry)-1])
	}
	for _, namespace := range slices.Concat(s.Namespaces, rapid.SliceOfN(drawnNamespaces, 3, 3).Draw(t, "other namespaces")) {
		for _, name := range []string{"a", "default", "zz"} {
			callers = append(callers, ServiceAccount{namespace, name}.Username())
		}
	}
	for _, account := range s.Exempt {
		callers = append(callers, account.Username())
	}
	for _, caller := range callers {
		covered := 0
		for _, part := range parts {
			if part.covers(caller) {
				covered++
			}
		}
		if covered != 1 {
			t.Fatalf("%q is in the range of %d shards", caller, covered)
		}
		for _, extra := range []map[string][]string{nil, bound} {
			got := governed.Match(context.Background(), write(person(caller, extra)), nil, nil)
			if want := s.governs(caller, extra != nil); got.Error != nil || got.Matches != want {
				t.Fatalf("%q with %v: want %v, got %+v", caller, extra, want, got)
			}
		}
	}
}

func TestAShardedScopeReadsBackWhereverItWasCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawnScopes.Draw(t, "scope")
		var expressions []string
		for _, part := range cut(s.withCanary().groups(), rapid.IntRange(400, 520).Draw(t, "bytes of a shard")) {
			expressions = append(expressions, part.expression(""))
		}
		got, err := ReadBack(expressions...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.normal(), got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// Proves K-2.
func TestReadBackRefusesShardsThatAreNotOneScope(t *testing.T) {
	good := must(largeScope.Expressions())
	if len(good) < 4 {
		t.Fatalf("want several shards, got %d", len(good))
	}
	with := func(change func([]string) []string) []string { return change(slices.Clone(good)) }
	for name, expressions := range map[string][]string{
		"no expression":           nil,
		"a missing first shard":   good[1:],
		"a missing last shard":    good[:len(good)-1],
		"a missing middle shard":  with(func(e []string) []string { return slices.Delete(e, 1, 2) }),
		"two shards in one place": with(func(e []string) []string { return slices.Insert(e, 1, e[1]) }),
		"shards in another order": with(func(e []string) []string { e[1], e[2] = e[2], e[1]; return e }),
		"an entry outside of its shard's range": with(func(e []string) []string {
			e[1] = strings.Replace(e[1], `.split(":")[2] in [`, `.split(":")[2] in ["a",`, 1)
			return e
		}),
		"a widened range": with(func(e []string) []string {
			e[0] = strings.Replace(e[0], longNamespaces(5000)[1000][:57], "m", 1)
			return e
		}),
	} {
		if got, err := ReadBack(expressions...); !errors.Is(err, ErrForeignExpression) {
			t.Errorf("%s: want ErrForeignExpression, got %d namespaces, %v", name, len(got.Namespaces), err)
		}
	}
}

// The most that a scope can hold, in entries and in bytes, against the API server's own accounts: 100,000 code points for
// an expression, and its cost budgets, of which a scope may use half.
// Proves K-9.
func TestTheLargestScopesKeepTheLimitsOfTheAPIServer(t *testing.T) {
	short := make([]string, 0, MaxEntries-1) // and the canary's
	for i := range MaxEntries - 1 {
		short = append(short, fmt.Sprintf("%04x", i))
	}
	oneNamespace := Scope{Namespaces: []string{"shop"}}
	for i := range 1400 {
		oneNamespace.Exempt = append(oneNamespace.Exempt, ServiceAccount{"shop", fmt.Sprintf("controller-%04d", i)})
	}
	for name, s := range map[string]Scope{
		"as many entries as possible": {Namespaces: short}, "as many bytes as possible": {Namespaces: longNamespaces(9500)},
		"as many exempt accounts in one namespace as possible": oneNamespace, "5,000 namespaces": largeScope,
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := s.shards()
			if err != nil {
				t.Fatal(err)
			}
			_, err = ReadBack(must(s.Expressions())...)
			if err != nil {
				t.Error(err)
			}
			for kind, conditions := range map[string][]*admissionregistration.MatchConditionApplyConfiguration{
				"governed": parts.conditions(Governed, ""), "governed and unstamped": parts.conditions("x", unstamped()),
			} {
				total, longest := 0, 0
				for _, c := range conditions {
					total, longest = total+len(*c.Expression), max(longest, len(*c.Expression))
				}
				if kind == "governed" && longest > maxShardBytes || longest > 100_000 {
					t.Errorf("%s: an expression has %d bytes", kind, longest)
				}
				cost := dearest(t, conditions, s)
				if cost > celconfig.RuntimeCELCostBudgetMatchConditions/2 || cost > celconfig.PerCallLimit/2 {
					t.Errorf("%s: costs %d", kind, cost)
				}
				t.Logf("%s: %d shards, %d bytes, the longest %d; cost %d of %d", kind, len(parts), total, longest, cost, celconfig.RuntimeCELCostBudgetMatchConditions)
			}
		})
	}
}

// dearest is the highest cost of a request, in the API server's units, over callers of every shard and over bystanders.
func dearest(t *testing.T, conditions []*admissionregistration.MatchConditionApplyConfiguration, s Scope) int64 {
	t.Helper()
	evaluator := evaluatorOf(conditions)
	if errs := evaluator.CompilationErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	callers := []string{"ben", "system:node:worker-3", canaryAccount.Username()}
	for i := 0; i < len(s.Namespaces); i += max(len(s.Namespaces)/50, 1) {
		callers = append(callers, ServiceAccount{s.Namespaces[i], "agent"}.Username())
	}
	for _, account := range s.Exempt[:min(len(s.Exempt), 5)] {
		callers = append(callers, account.Username())
	}
	var most int64
	for _, caller := range callers {
		attributes := write(person(caller, bound))
		request := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(attributes.GetResource()), metav1.GroupVersionKind(attributes.VersionedKind))
		_, left, err := evaluator.ForInput(context.Background(), attributes, request, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, celconfig.RuntimeCELCostBudgetMatchConditions-left)
	}
	return most
}
