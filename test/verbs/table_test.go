package verbs_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// table is what came of all kinds and verbs.
type table struct {
	mu sync.Mutex
	// cells by title of the kind and verb.
	cells map[string]map[string]string
	// requests that a verb sent when it was let through, and for how many kinds.
	requests map[string]map[string]int
	same     map[string][]string // verbs by kind and question
	commands int                 // answers with the printed command
	outcomes map[v1alpha1.UseOutcome]int
	// unknown are the first grants on kinds that the manager may not read.
	unknown []client.ObjectKey
}

func newTable() *table {
	return &table{
		cells: map[string]map[string]string{}, requests: map[string]map[string]int{}, same: map[string][]string{},
		outcomes: map[v1alpha1.UseOutcome]int{},
	}
}

const (
	cellNone   = "-"
	cellFailed = "FAILED"
)

var words = map[policy.Class]string{
	0: "open", policy.ClassAuto: "AUTO", policy.ClassAutoWithDisclosure: "DISCLOSED", policy.ClassAsk: "ASK", policy.ClassForbidden: "FORBIDDEN",
}

func (x *table) set(k *kind, verb, word string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cells[k.title()] == nil {
		x.cells[k.title()] = map[string]string{}
	}
	x.cells[k.title()][verb] = word
}

// done enters a verb that did what its class says.
func (x *table) done(k *kind, v verb, class policy.Class, approvals int, requests []string) {
	word := words[class]
	if approvals > 1 {
		word += fmt.Sprintf(" x%d", approvals)
	}
	x.set(k, v.name, word)
	if class == policy.ClassForbidden {
		return
	}
	methods := make([]string, 0, len(requests))
	for _, request := range requests {
		method, _, _ := strings.Cut(request, "=")
		methods = append(methods, method)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.requests[v.name] == nil {
		x.requests[v.name] = map[string]int{}
	}
	x.requests[v.name][strings.Join(methods, " ")]++
}

func (x *table) ways(k *kind, same string, first, another string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	about := k.title() + " " + same
	for _, verb := range []string{first, another} {
		if !slices.Contains(x.same[about], verb) {
			x.same[about] = append(x.same[about], verb)
		}
	}
}

func (x *table) told() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.commands++
}

// sampled grants are looked at again when their outcome must be known.
const sampled = 5

func (x *table) spent(namespace string, g *v1alpha1.PermissionGrant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	outcome := g.Status.Uses[0].Outcome
	x.outcomes[outcome]++
	if outcome != v1alpha1.UseConsumed && len(x.unknown) < sampled {
		x.unknown = append(x.unknown, client.ObjectKey{Namespace: namespace, Name: g.Name})
	}
}

// print writes the table and its counts to the log of the test.
func (x *table) print(t *testing.T, all []*kind) {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "kind\t%s\tfurther\n", strings.Join(universal, "\t"))
	counts := map[string]int{}
	for _, k := range all {
		row := x.cells[k.title()]
		fmt.Fprint(w, k.title())
		for _, verb := range universal {
			word := cmp.Or(row[verb], cellNone)
			counts[word]++
			fmt.Fprintf(w, "\t%s", word)
		}
		var further []string
		for _, c := range k.Commands {
			word := cmp.Or(row[c.Verb], cellNone)
			counts[word]++
			further = append(further, c.Verb+" "+word)
		}
		fmt.Fprintf(w, "\t%s\n", strings.Join(further, ", "))
	}
	_ = w.Flush() // a strings.Builder takes everything
	fmt.Fprintf(&text, "\ncells:")
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, " %s %d", word, counts[word])
	}
	fmt.Fprintf(&text, "\nDISCLOSED is AUTO_WITH_DISCLOSURE, open is not gated, x2 needed two approvals, - does not apply\n\nrequests of a command that is let through, and for how many kinds:\n")
	for _, verb := range slices.Sorted(maps.Keys(x.requests)) {
		fmt.Fprintf(&text, "  %s:", verb)
		for _, requests := range slices.Sorted(maps.Keys(x.requests[verb])) {
			fmt.Fprintf(&text, " [%s] %d", requests, x.requests[verb][requests])
		}
		fmt.Fprintln(&text)
	}
	fmt.Fprintf(&text, "\none question, however it is sent:\n")
	for _, about := range slices.Sorted(maps.Keys(x.same)) {
		fmt.Fprintf(&text, "  %s: %s\n", about, strings.Join(x.same[about], ", "))
	}
	fmt.Fprintf(&text, "\nuses: %v; approved with the printed command: %d; unlucky runs: %d\n", x.outcomes, x.commands, unluckyRuns.Load())
	t.Log("\n" + text.String())
}
