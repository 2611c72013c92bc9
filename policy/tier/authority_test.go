package tier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
	"stepbeyond.dev/stepbeyond/policy/tier"
)

var verdicts = []policy.Verdict{policy.VerdictAllow, policy.VerdictDeny, policy.VerdictPending, policy.VerdictHeld}

// parse reads the Go files of a folder that are no tests.
func parse(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = file
	}
	if len(files) == 0 {
		t.Fatalf("no Go files in %s", folder)
	}
	return files
}

func imports(t *testing.T, file *ast.File) []string {
	t.Helper()
	var paths []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// Proves T-1 and T-7: this package cannot return a class or a verdict, because it imports nothing that has one and spells
// none itself.
func TestNoWordOfThisPackageDecides(t *testing.T) {
	literals := 0
	for path, file := range parse(t, ".") {
		for _, imported := range imports(t, file) {
			if strings.Contains(imported, ".") {
				t.Errorf("%s imports %s; guidance needs the standard library only", path, imported)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			literals++
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			_, class := policy.ParseClass(strings.ToUpper(text))
			verdict := slices.ContainsFunc(verdicts, func(v policy.Verdict) bool { return strings.EqualFold(string(v), text) })
			if class || verdict {
				t.Errorf("%s spells %q", path, text)
			}
			return true
		})
	}
	if literals == 0 {
		t.Error("no literal was looked at")
	}
}

// Proves T-1: the engine does not know this package.
func TestTheEngineDoesNotImportTiers(t *testing.T) {
	for path, file := range parse(t, "..") {
		for _, imported := range imports(t, file) {
			if strings.HasSuffix(imported, "/policy/tier") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

// tierFields names each field under a type that could carry a tier: by its name, or by a type of this package.
func tierFields(of reflect.Type, path string, seen map[reflect.Type]bool) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return tierFields(of.Elem(), path, seen)
	case reflect.Struct:
	default:
		return nil
	}
	if seen[of] {
		return nil
	}
	seen[of] = true
	var found []string
	for i := range of.NumField() {
		field := of.Field(i)
		at := path + "." + field.Name
		if strings.Contains(strings.ToLower(field.Name), "tier") || field.Type == reflect.TypeFor[tier.Tier]() {
			found = append(found, at)
		}
		found = append(found, tierFields(field.Type, at, seen)...)
	}
	return found
}

// Proves T-1: tier is no input of a decision. Nothing that Compile or Decide takes, and nothing that an engine holds, has
// a field for it.
func TestNoInputOfTheEngineHoldsATier(t *testing.T) {
	for _, input := range []reflect.Type{
		reflect.TypeFor[policy.Set](), reflect.TypeFor[policy.Engine](), reflect.TypeFor[policy.Operation](), reflect.TypeFor[policy.SessionView](),
	} {
		if found := tierFields(input, input.Name(), map[reflect.Type]bool{}); len(found) > 0 {
			t.Errorf("fields that could carry a tier: %v", found)
		}
	}
	type carrier struct {
		Nested []struct{ ModelTier string }
		Kind   tier.Tier
	}
	want := []string{"x.Nested.ModelTier", "x.Kind"}
	if diff := cmp.Diff(want, tierFields(reflect.TypeFor[carrier](), "x", map[reflect.Type]bool{})); diff != "" {
		t.Errorf("fields that carry a tier (-want +got):\n%s", diff)
	}
}

var now = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

func engine(t *testing.T) *policy.Engine {
	t.Helper()
	loaded, err := baseline.Load(baseline.Latest)
	if err != nil {
		t.Fatal(err)
	}
	compiled, problems := policy.Compile(policy.Set{
		Baseline: loaded, Profiles: map[string]policy.Policy{"standard": {ID: policy.PolicyID{Kind: policy.KindProfile, Namespace: "stepbeyond-system", Name: "standard"}}},
		Namespaces: map[string]policy.Namespace{"checkout": {Profile: "standard"}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

// drawOperation is a tool call that is harmless but for at most one fact.
func drawOperation(t *rapid.T) policy.Operation {
	op := policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.VerbUpdate, Tool: "mcp:files/edit",
		DryRun: rapid.IntRange(0, 9).Draw(t, "dry run") == 0, Digest: "v1:digest",
	}
	for _, fact := range policy.AllFacts() {
		presence := policy.Absent
		if fact == policy.Reversible || fact == policy.Local || fact == policy.InScope {
			presence = policy.Present
		}
		op.Facts.Add(fact, policy.FactValue{Presence: presence, Provenance: policy.Parsed})
	}
	harms := map[string][]policy.Fact{
		"none": {}, "an assumption": {policy.MaterialAssumption}, "forbidden": {policy.EscalatesAuthority, policy.ExfiltratesSecret},
		"any": policy.AllFacts(),
	}
	harm := harms[rapid.SampledFrom([]string{"none", "an assumption", "forbidden", "any"}).Draw(t, "harm")]
	if len(harm) > 0 {
		fact, presence := rapid.SampledFrom(harm).Draw(t, "fact"), policy.Present
		if op.Facts[fact].Presence == policy.Present {
			presence = policy.Absent
		}
		op.Facts.Add(fact, policy.FactValue{Presence: presence, Provenance: policy.Declared})
	}
	return op
}

func drawSession(t *rapid.T) policy.SessionView {
	return policy.SessionView{
		State:     rapid.SampledFrom([]policy.SessionState{policy.SessionActive, policy.SessionActive, policy.SessionActive, policy.SessionSuspended}).Draw(t, "state"),
		Namespace: "checkout", Name: "agent", UID: "uid-agent", Epoch: 1, Username: "system:serviceaccount:checkout:agent",
		Authority: policy.Authority{
			Stages: []policy.Stage{policy.StageExecute}, Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}, Namespaces: []string{"checkout"},
		},
	}
}

// Proves T-1: class, verdict and everything else of a decision are equal whatever tier the session has. That no input of
// Decide can carry one is proved above; here the guidance of every tier is asked for between two decisions, and nothing
// that it holds reaches the second.
func TestADecisionIsEqualWhateverTheTier(t *testing.T) {
	decider := engine(t)
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			op, session := drawOperation(t), drawSession(t)
			want := decider.Decide(op, session, now)
			for _, of := range tiers {
				signals := tier.Signals{
					Repetition: &tier.Repetition{CachedResult: "result:1"}, RealFailure: true,
					DelegationAskedBy: rapid.SampledFrom([]tier.Asker{tier.AskedByNobody, tier.AskedByUser, tier.AskedByModel, tier.AskedByParentPlan}).Draw(t, "asker"),
				}
				if _, err := tier.For(of, signals); err != nil {
					t.Fatal(err)
				}
				planned, err := tier.PlanBatch(of, []tier.Item{{Name: "op", Runnable: want.Verdict == policy.VerdictAllow}}, 1)
				if err != nil {
					t.Fatal(err)
				}
				if runs := planned[0].Disposition == tier.DispositionRun; runs != (want.Verdict == policy.VerdictAllow) {
					t.Fatalf("tier %s plans %+v for verdict %s", of, planned, want.Verdict)
				}
				if diff := cmp.Diff(want, decider.Decide(op, session, now)); diff != "" {
					t.Fatalf("tier %s has another decision:\n%s", of, diff)
				}
			}
		}
	})
}

func TestDecisionsBetweenTiersReachEveryClassAndVerdict(t *testing.T) {
	decider := engine(t)
	labels := rapid.Custom(func(t *rapid.T) []string {
		d := decider.Decide(drawOperation(t), drawSession(t), now)
		return []string{"class " + d.Class.String(), "verdict " + string(d.Verdict)}
	})
	var wanted []string
	for class := policy.ClassAuto; class <= policy.ClassForbidden; class++ {
		wanted = append(wanted, "class "+class.String())
	}
	for _, verdict := range verdicts {
		wanted = append(wanted, "verdict "+string(verdict))
	}
	shares.Check(t, labels, 5000, wanted...)
}
