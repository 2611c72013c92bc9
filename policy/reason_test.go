package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
)

// constants of one type in reason.go: name to value. A new constant cannot be forgotten by a test.
func constants(t *testing.T, typeName string) map[string]string {
	t.Helper()
	const file = "reason.go"
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			if name, ok := value.Type.(*ast.Ident); !ok || name.Name != typeName {
				continue
			}
			text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found[value.Names[0].Name] = text
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typeName)
	}
	return found
}

func allReasons(t *testing.T) []policy.Reason {
	t.Helper()
	var reasons []policy.Reason
	for _, value := range slices.Sorted(maps.Values(constants(t, "Reason"))) {
		reasons = append(reasons, policy.Reason(value))
	}
	return reasons
}

// prevents nothing: the reasons of an allowed operation.
var allowing = []policy.Reason{policy.ReasonAllowed, policy.ReasonDisclosed, policy.ReasonDryRun, policy.ReasonGranted}

// Proves B-1: every reason that can prevent a call names exactly one boundary, every other none.
func TestEveryReasonThatPreventsNamesItsBoundary(t *testing.T) {
	boundaries := slices.Collect(maps.Values(constants(t, "Boundary")))
	for _, reason := range allReasons(t) {
		boundary := reason.Boundary()
		if !slices.Contains(boundaries, string(boundary)) {
			t.Errorf("reason %s has boundary %q, which is none", reason, boundary)
		}
		if prevents := !slices.Contains(allowing, reason); prevents != (boundary != policy.BoundaryNone) {
			t.Errorf("reason %s prevents a call: %v; its boundary is %q", reason, prevents, boundary)
		}
	}
}

// Proves B-1: the boundaries are those of the requirement, and no other.
func TestBoundariesAreThoseOfTheRequirement(t *testing.T) {
	want := map[string]string{
		"BoundaryNone": "", "BoundaryAuthority": "PlatformSafetyAndUserAuthority", "BoundarySchema": "SchemaAndTransportIntegrity",
		"BoundaryCompareAndSwap": "CompareAndSwap", "BoundaryDelegation": "DelegatedOwnership", "BoundaryResources": "ResourceLimit",
		"BoundarySteering": "Steering",
	}
	if diff := cmp.Diff(want, constants(t, "Boundary")); diff != "" {
		t.Errorf("boundaries (-want +got):\n%s", diff)
	}
}

func TestReasonsAreWordsAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for name, value := range constants(t, "Reason") {
		if "Reason"+value != name {
			t.Errorf("constant %s is spelled %q", name, value)
		}
		if other, twice := seen[value]; twice {
			t.Errorf("%s and %s are both %q", name, other, value)
		}
		seen[value] = name
	}
}

// A client tells apart what waits, what is closed and what needs a session by the word that kubectl prints.
func TestStatusWords(t *testing.T) {
	want := map[policy.Reason]string{
		policy.ReasonNoSession: "NoSession", policy.ReasonSessionPending: "NoSession", policy.ReasonSessionAmbiguous: "NoSession",
		policy.ReasonSessionEnded: "NoSession", policy.ReasonForbidden: "Forbidden", policy.ReasonOutsideAuthority: "Forbidden",
		policy.ReasonSuspended: "SteeringHold",
	}
	for _, reason := range allReasons(t) {
		word, shared := want[reason]
		if !shared {
			word = string(reason)
		}
		if got := reason.Status(); got != word {
			t.Errorf("reason %s has status word %q, want %q", reason, got, word)
		}
	}
}
