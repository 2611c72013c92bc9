package tool_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/tool"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type arguments = map[string]any

// presentFacts are the harms that were parsed.
func presentFacts(op policy.Operation) []string {
	found := []string{}
	for _, fact := range policy.AllFacts() {
		if op.Facts[fact].Presence == policy.Present {
			found = append(found, fact.String())
		}
	}
	return found
}

// Proves C-4: a parsed pure read is known by its name and contradicted by description and arguments.
func TestWhatOnlyReads(t *testing.T) {
	for _, test := range []struct {
		name string
		call tool.Call
		want bool
	}{
		{"the verb first", tool.Call{Name: "list_invoices"}, true},
		{"the verb first in camelCase", tool.Call{Name: "getInvoice"}, true},
		{"the verb first in kebab-case", tool.Call{Name: "search-invoices"}, true},
		{"the verb last", tool.Call{Name: "invoices_list"}, true},
		{"the verb behind a product's name", tool.Call{Name: "AcmeReadInbox"}, true},
		{"a name with its server", tool.Call{Name: "mcp:delete-server/list_invoices"}, true},
		{"a name with its server in underscores", tool.Call{Name: "mcp__write__list_invoices"}, true},
		{"the verb behind a product's name, as a noun", tool.Call{Name: "AcmeSearchInbox", Description: "Search for mail."}, true},
		{"a noun at the end that is read", tool.Call{Name: "node_metrics", Description: "Returns the load of a node"}, true},
		{"a log, which is a verb as well", tool.Call{Name: "node_log", Description: "Get the log of a node"}, true},
		{"what is read of a plural", tool.Call{Name: "nodes_log"}, true},
		{"nouns behind the verb that are verbs as well", tool.Call{Name: "get_transfer_order_release"}, true},
		{"a noun that is a verb, with the verb last", tool.Call{Name: "issue_read"}, true},
		{"a check", tool.Call{Name: "check_payment"}, true},
		{"a filter by money", tool.Call{Name: "search_flights", Arguments: arguments{"price": 100}}, true},
		{"a statement that selects", tool.Call{Name: "query_table", Arguments: arguments{"sql": "SELECT a FROM b"}}, true},
		{"a description that denies changes", tool.Call{Name: "find_copies", Description: "Find copies; does not close, link and delete anything."}, true},
		{"a description that lists updates", tool.Call{Name: "list_news", Description: "Lists reviews, and updates on issues."}, true},
		{"advice in the second sentence", tool.Call{Name: "get_file", Description: "Get a file. Then update and delete it elsewhere."}, true},
		{"a dispatcher that calls a read", tool.Call{Name: "call_tool", Arguments: arguments{"tool_name": "list_invoices", "arguments": `{"page": 1}`}}, true},

		{"nothing", tool.Call{}, false},
		{"a verb of reading behind one that could change", tool.Call{Name: "orderListAccess"}, false},
		{"a noun of reading behind an unknown verb in -ss", tool.Call{Name: "egress_status"}, false},
		{"a noun of reading behind an unknown verb", tool.Call{Name: "expunge_list"}, false},
		{"the same with its description", tool.Call{Name: "expunge_list", Description: "Expunges the list."}, false},
		{"a noun at the end behind an unknown verb", tool.Call{Name: "expunge_history"}, false},
		{"the same with its own description", tool.Call{Name: "expunge_history", Description: "Expunges what was done."}, false},
		{"a description that begins with a noun", tool.Call{Name: "issue_read", Description: "Issues, expunged"}, false},
		{"an unknown verb", tool.Call{Name: "frobnicate"}, false},
		{"a verb of changing", tool.Call{Name: "update_invoice"}, false},
		{"both verbs", tool.Call{Name: "get_or_create_invoice"}, false},
		{"a second verb that could be a noun", tool.Call{Name: "find_and_order_part"}, false},
		{"a noun of reading behind a verb", tool.Call{Name: "deposit_check"}, false},
		{"a record that is written", tool.Call{Name: "log_verification"}, false},
		{"read as a state", tool.Call{Name: "mark_all_read"}, false},
		{"checking in", tool.Call{Name: "check_in_guest"}, false},
		{"a query that is run", tool.Call{Name: "run_query"}, false},
		{"a description that begins with a change", tool.Call{Name: "get_it", Description: "This tool deletes the file."}, false},
		{"a description that goes on to a change", tool.Call{Name: "get_it", Description: "Gets the message and deletes it."}, false},
		{"a command among the arguments", tool.Call{Name: "get_status", Arguments: arguments{"command": "rm -r x"}}, false},
		{"an action among the arguments", tool.Call{Name: "get_status", Arguments: arguments{"method": "delete_all"}}, false},
		{"a losing action among the arguments that could be a noun", tool.Call{Name: "get_disk", Arguments: arguments{"action": "format"}}, false},
		{"a statement that writes", tool.Call{Name: "query_table", Arguments: arguments{"sql": "select 1; drop table a"}}, false},
		{"a statement deep inside", tool.Call{Name: "query_table", Arguments: arguments{"a": []any{arguments{"sql": "DELETE FROM a"}}}}, false},
		{"a dispatcher that calls a change", tool.Call{Name: "call_tool", Arguments: arguments{"tool_name": "delete_invoice"}}, false},
		{"a dispatcher with something else beside it", tool.Call{Name: "call_tool", Arguments: arguments{"tool_name": "list_invoices", "then": "x"}}, false},
		{"a dispatcher whose arguments cannot be read", tool.Call{Name: "call_tool", Arguments: arguments{"tool_name": "list_invoices", "arguments": "{"}}, false},
		{"a dispatcher whose arguments are a number", tool.Call{Name: "call_tool", Arguments: arguments{"tool_name": "list_invoices", "arguments": 5}}, false},
		{"a dispatcher that names no text", tool.Call{Name: "call_tool", Arguments: arguments{"tool_name": 5}}, false},
		{"a dispatcher that names nothing", tool.Call{Name: "call_tool", Arguments: arguments{"arguments": nil}}, false},
		{"a dispatcher of a dispatcher", tool.Call{Name: "call_tool", Arguments: arguments{"tool_name": "call_tool", "arguments": arguments{"tool_name": "list_a"}}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := tool.Operation(test.call, tool.Known{})
			if got := op.ReadBy == policy.Parsed && op.Verb == policy.VerbRead && op.Stage == policy.StageUnderstand; got != test.want {
				t.Errorf("is a pure read: %v, want %v (verb %s, stage %s)", got, test.want, op.Verb, op.Stage)
			}
		})
	}
}

// Proves C-2 and C-7: what name, description and arguments tell.
func TestWhatIsParsed(t *testing.T) {
	const execute, publish = policy.StageExecute, policy.StagePublish
	for _, test := range []struct {
		name  string
		call  tool.Call
		verb  policy.Verb
		stage policy.Stage
		want  []string
	}{
		{"a deletion", tool.Call{Name: "delete_repository"}, policy.VerbDelete, execute, []string{"Destructive"}},
		{"a deletion that only the description tells", tool.Call{Name: "tidy", Description: "Deletes old files."}, policy.VerbDelete, execute, []string{"Destructive"}},
		{"a message", tool.Call{Name: "sendEmail"}, policy.VerbCreate, publish, []string{"Sends"}},
		{"a recipient", tool.Call{Name: "frobnicate", Arguments: arguments{"cc": "a@b.example"}}, policy.VerbUpdate, publish, []string{"Sends"}},
		{"nobody as recipient", tool.Call{Name: "frobnicate", Arguments: arguments{"cc": ""}}, policy.VerbUpdate, execute, []string{}},
		{"a publication", tool.Call{Name: "publishPackage"}, policy.VerbCreate, publish, []string{"External"}},
		{"an address", tool.Call{Name: "frobnicate", Arguments: arguments{"target": "https://a.example"}}, policy.VerbUpdate, publish, []string{"External"}},
		{"a payment", tool.Call{Name: "pay_bill"}, policy.VerbUpdate, execute, []string{"Cost"}},
		{"an amount", tool.Call{Name: "frobnicate", Arguments: arguments{"totalAmount": 5}}, policy.VerbUpdate, execute, []string{"Cost"}},
		{"access", tool.Call{Name: "unlock_door"}, policy.VerbUpdate, execute, []string{"Security"}},
		{"a password in the name", tool.Call{Name: "set_password"}, policy.VerbUpdate, execute, []string{"Credentials"}},
		{"a password among the arguments", tool.Call{Name: "frobnicate", Arguments: arguments{"a": arguments{"apiKey": "x"}}}, policy.VerbUpdate, execute, []string{"Credentials"}},
		{"everything by name", tool.Call{Name: "update_all_tasks"}, policy.VerbUpdate, execute, []string{"Unbounded"}},
		{"everything by argument", tool.Call{Name: "frobnicate", Arguments: arguments{"which": "*"}}, policy.VerbUpdate, execute, []string{"Unbounded"}},
		{"everything by switch", tool.Call{Name: "frobnicate", Arguments: arguments{"all": true}}, policy.VerbUpdate, execute, []string{"Unbounded"}},
		{"a command", tool.Call{Name: "run_command", Arguments: arguments{"command": "ls"}}, policy.VerbConnect, execute, []string{}},
		{"a statement that loses data", tool.Call{Name: "frobnicate", Arguments: arguments{"sql": "truncate a"}}, policy.VerbUpdate, execute, []string{"Destructive"}},
		{"a secret that is sent", tool.Call{Name: "send_note", Arguments: arguments{"text": "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"}}, policy.VerbCreate, publish, []string{"Sends", "Credentials", "ExfiltratesSecret"}},
		{"a secret that stays", tool.Call{Name: "frobnicate", Arguments: arguments{"text": "-----BEGIN RSA PRIVATE KEY-----"}}, policy.VerbUpdate, execute, []string{"Credentials"}},

		{"a read of secrets by name", tool.Call{Name: "list_secrets"}, policy.VerbRead, policy.StageUnderstand, []string{"Credentials"}},
		{"a read of secrets by description", tool.Call{Name: "get_value", Description: "Get the access token of a user"}, policy.VerbRead, policy.StageUnderstand, []string{"Credentials"}},
		{"a read of secrets by kind", tool.Call{Name: "resources_get", Arguments: arguments{"kind": "Secret"}}, policy.VerbRead, policy.StageUnderstand, []string{"Credentials"}},
		{"a read of secrets by path", tool.Call{Name: "read_file", Arguments: arguments{"path": "/home/a/.ssh/config"}}, policy.VerbRead, policy.StageUnderstand, []string{"Credentials"}},
		{"a bookmark is no secret", tool.Call{Name: "list_pods", Arguments: arguments{"pageToken": "abc"}}, policy.VerbRead, policy.StageUnderstand, []string{}},
		{"an address", tool.Call{Name: "fetch_page", Arguments: arguments{"url": "https://a.example/b"}}, policy.VerbRead, policy.StageUnderstand, []string{}},
		{"an address that carries data", tool.Call{Name: "fetch_page", Arguments: arguments{"url": "https://a.example/b?c=d"}}, policy.VerbRead, policy.StageUnderstand, []string{"Sends"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := tool.Operation(test.call, tool.Known{})
			if diff := cmp.Diff(test.want, presentFacts(op)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if op.Verb != test.verb || op.Stage != test.stage {
				t.Errorf("verb %s and stage %s, want %s and %s", op.Verb, op.Stage, test.verb, test.stage)
			}
			if got, want := op.Capability == policy.CapabilityPublishExternal, test.stage == publish; got != want {
				t.Errorf("capability %s in stage %s", op.Capability, op.Stage)
			}
		})
	}
}

func TestWhatTheFrontDoorKnowsIsPassedOn(t *testing.T) {
	target := policy.Target{Resource: "notes", Name: "a", Origin: policy.OriginThisSession}
	op := tool.Operation(tool.Call{Name: "get_plan"}, tool.Known{Context: true, Optional: true, Target: target})
	if op.Capability != policy.CapabilityReadContext || !op.Optional || op.Target != target || op.Tool != "get_plan" {
		t.Errorf("operation %+v", op)
	}
	if got := tool.Operation(tool.Call{Name: "get_plan"}, tool.Known{}); got.Capability != policy.CapabilityReadProject || got.Target.Origin != policy.OriginUnknown {
		t.Errorf("operation of which nothing is known %+v", got)
	}
}

func TestHugeCallsAreNoPureReads(t *testing.T) {
	long := "get"
	for range 100 {
		long += "_a"
	}
	if op := tool.Operation(tool.Call{Name: long}, tool.Known{}); op.ReadBy != 0 {
		t.Error("a name of 101 words is a pure read")
	}
	values := make([]any, 5000)
	for i := range values {
		values[i] = "a"
	}
	if op := tool.Operation(tool.Call{Name: "get_a", Arguments: arguments{"a": values}}, tool.Known{}); op.ReadBy != 0 {
		t.Error("a call of 5,000 values is a pure read")
	}
}

var now = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

var everyStage = []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish}

// class under no policy but an empty baseline, for a session that may do everything.
func class(t *rapid.T, op policy.Operation) policy.Class {
	engine, problems := policy.Compile(policy.Set{
		Baseline:   policy.Policy{ID: policy.PolicyID{Kind: policy.KindBaseline, Name: "baseline"}},
		Profiles:   map[string]policy.Policy{"standard": {ID: policy.PolicyID{Kind: policy.KindProfile, Name: "standard"}}},
		Namespaces: map[string]policy.Namespace{"checkout": {Profile: "standard"}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return engine.Decide(op, policy.SessionView{
		State: policy.SessionActive, Namespace: "checkout", UID: "uid", Authority: policy.Authority{
			Stages: everyStage,
			Capabilities: []policy.Capability{
				policy.CapabilityReadContext, policy.CapabilityReadProject, policy.CapabilityExecuteLocal, policy.CapabilityPublishExternal,
			},
		},
	}, now).Class
}

var names = []string{"list_orders", "get_order", "search_notes", "find_order", "frobnicate", "delete_order", "send_email", "get_secret", "call_tool", "", "update_and_read"}

func some(t *rapid.T, label string, facts []policy.Fact, most int) []policy.Fact {
	return rapid.SliceOfN(rapid.SampledFrom(facts), 0, most).Draw(t, label)
}

// drawDeclared is a call, and the same call with something declared about it.
func drawDeclared(t *rapid.T) (silent, declared tool.Call) {
	silent = tool.Call{
		Name:        rapid.SampledFrom(names).Draw(t, "name"),
		Description: rapid.SampledFrom([]string{"", "Lists orders.", "Deletes orders."}).Draw(t, "description"),
	}
	declared = silent
	declared.Declared.Stage = rapid.SampledFrom(append([]policy.Stage{"", "other"}, everyStage...)).Draw(t, "stage")
	// A declaration that everything is fine is the one that must not lower a class.
	harms := slices.DeleteFunc(policy.AllFacts(), func(f policy.Fact) bool {
		return f == policy.Reversible || f == policy.Local || f == policy.InScope
	})
	d := &declared.Declared
	switch rapid.SampledFrom([]string{"no harm", "an assumption", "anything"}).Draw(t, "declared") {
	case "no harm":
		d.Present, d.Absent = []policy.Fact{policy.Reversible, policy.Local, policy.InScope}, some(t, "absent", harms, 13)
	case "an assumption":
		d.Present, d.Absent = []policy.Fact{policy.MaterialAssumption}, some(t, "absent", harms, 13)
	default:
		d.Present, d.Absent = some(t, "present", policy.AllFacts(), 5), some(t, "absent", policy.AllFacts(), 16)
	}
	return silent, declared
}

// Proves C-4 and C-3: whatever is declared about a call, its class and its stage never come down.
func TestWhatIsDeclaredOnlyRaises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		silent, call := drawDeclared(t)
		without, with := tool.Operation(silent, tool.Known{}), tool.Operation(call, tool.Known{})
		if before, after := class(t, without), class(t, with); after < before {
			t.Fatalf("declared %+v: class %s, without it %s", call.Declared, after, before)
		}
		if slices.Index(everyStage, with.Stage) < slices.Index(everyStage, without.Stage) {
			t.Fatalf("declared stage %q: stage %s, without it %s", call.Declared.Stage, with.Stage, without.Stage)
		}
		if with.ReadBy != without.ReadBy {
			t.Fatalf("ReadBy is %s, without declarations %s", with.ReadBy, without.ReadBy)
		}
	})
}

func TestDeclarationsReachEveryClass(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		silent, call := drawDeclared(t)
		before, after := class(t, tool.Operation(silent, tool.Known{})), class(t, tool.Operation(call, tool.Known{}))
		return []string{"before " + before.String(), "class " + after.String(), fmt.Sprintf("raised %t", before < after)}
	})
	// Words alone tell no assumption and forbid nothing: only what is declared does.
	shares.Check(t, labels, 2000, "before AUTO", "before ASK", "class AUTO", "class AUTO_WITH_DISCLOSURE", "class ASK", "class FORBIDDEN", "raised true", "raised false")
}

// Proves C-4: a tool with words that nobody knows is ASK, whatever its arguments are.
func TestAnUnknownToolIsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// No word of any lexicon has a q, x or z twice in a row.
		name := rapid.StringMatching(`[a-z]{0,4}(qq|xx)[a-z]{0,4}(_[a-z]{0,3}zz)?`).Draw(t, "name")
		call := tool.Call{Name: name, Arguments: arguments{
			rapid.SampledFrom([]string{"a", "id", "kind", "url", "amount"}).Draw(t, "argument"): rapid.SampledFrom([]any{1, true, "x", nil}).Draw(t, "value"),
		}}
		if got := class(t, tool.Operation(call, tool.Known{})); got != policy.ClassAsk {
			t.Fatalf("class %s, want ASK", got)
		}
	})
}
