package tier

import "fmt"

// Item is one call of a batch, in the caller's order.
type Item struct {
	// Name is the caller's for the item.
	Name string
	// Runnable tells that the engine lets the item run.
	Runnable bool
	// AtomicBatch names the declared batch that the item belongs to; empty for none.
	AtomicBatch string
}

// Disposition says what to do with an item.
type Disposition string

const (
	// DispositionRun: run it in its place.
	DispositionRun Disposition = "run"
	// DispositionAnswered: the engine's answer stands in its place.
	DispositionAnswered Disposition = "answered"
	// DispositionIncomplete: not run, because a member of its atomic batch cannot run.
	DispositionIncomplete Disposition = "incomplete"
	// DispositionDeferred: left for a later batch.
	DispositionDeferred Disposition = "deferred"
)

// HasResult tells whether the item has a result or failure of its own. Every other disposition is a state of the
// runtime and is never reported as one (requirements T-3, B-8).
func (d Disposition) HasResult() bool { return d == DispositionRun }

// Planned is an item with its disposition.
type Planned struct {
	Name        string
	Disposition Disposition
}

// PlanBatch gives each item its disposition, in the caller's order and one for one (requirement T-3). An item that cannot
// run takes nothing from the others, except inside a declared atomic batch, which runs whole or not at all.
//
// runAtMost is how many items guidance advises to run; 0 means all. It counts for the small tier only: the sequence of a
// medium or large model is preserved. Once an item is deferred all later ones are, so that none overtakes it; an atomic
// batch is deferred whole, and runs whole when it begins the batch or has begun. The error names a tier that is none or a
// negative runAtMost.
func PlanBatch(t Tier, items []Item, runAtMost int) ([]Planned, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	if runAtMost < 0 {
		return nil, fmt.Errorf("runAtMost: is %d, must be 0 or more", runAtMost)
	}
	p := plan{size: map[string]int{}, incomplete: map[string]bool{}, begun: map[string]bool{}}
	if t == Small {
		p.runAtMost = runAtMost
	}
	for _, item := range items {
		if item.AtomicBatch != "" {
			p.size[item.AtomicBatch]++
			p.incomplete[item.AtomicBatch] = p.incomplete[item.AtomicBatch] || !item.Runnable
		}
	}
	planned := make([]Planned, 0, len(items))
	for _, item := range items {
		planned = append(planned, Planned{Name: item.Name, Disposition: p.next(item)})
	}
	return planned, nil
}

// plan is what has been planned so far. The maps are by atomic batch.
type plan struct {
	size       map[string]int
	incomplete map[string]bool
	begun      map[string]bool
	runAtMost  int // 0 means all
	running    int
	deferring  bool
}

func (p *plan) next(item Item) Disposition {
	switch {
	case !item.Runnable:
		return DispositionAnswered
	case p.incomplete[item.AtomicBatch]:
		return DispositionIncomplete
	case p.begun[item.AtomicBatch]:
		return DispositionRun
	}
	size := max(p.size[item.AtomicBatch], 1)
	// A batch that is larger than the advice still runs when it comes first: it cannot be cut, and waiting makes it no
	// smaller.
	if p.deferring || (p.runAtMost > 0 && p.running > 0 && p.running+size > p.runAtMost) {
		p.deferring = true
		return DispositionDeferred
	}
	p.running += size
	if item.AtomicBatch != "" {
		p.begun[item.AtomicBatch] = true
	}
	return DispositionRun
}
