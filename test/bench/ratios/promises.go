package main

import (
	"fmt"
	"io"
	"time"

	"stepbeyond.dev/stepbeyond/test/bench"
)

// promise bounds the cost of one contender by that of another.
type promise struct {
	text   string
	of, by key
	most   float64
}

func promises() []promise {
	var list []promise
	for _, what := range []string{rules, kubernetes} {
		bounds := map[string]float64{bench.OPA: 1. / 20, bench.Cedar: 1. / 100}
		if what == kubernetes {
			bounds = map[string]float64{bench.OPA: 1. / 8, bench.Cedar: 1. / 25}
		}
		for _, path := range paths {
			ours := key{what, bench.StepBeyond, 1000, path}
			few := ours
			few.rules = 10
			list = append(list, promise{text: "1,000 rules to 10", of: ours, by: few, most: 1.5})
			for _, engine := range []string{bench.OPA, bench.Cedar} {
				other := ours
				other.engine = engine
				list = append(list, promise{text: "to " + engine + " at 1,000 rules", of: ours, by: other, most: bounds[engine]})
			}
		}
	}
	return list
}

// promisedKeys are the contenders that a promise is about.
func promisedKeys() map[key]bool {
	keys := map[key]bool{}
	for _, p := range promises() {
		keys[p.of], keys[p.by] = true, true
	}
	return keys
}

// printPromises tells whether all are kept.
func printPromises(out io.Writer, costs map[key]time.Duration) bool {
	kept := true
	fmt.Fprintln(out)
	for _, p := range promises() {
		ratio := costs[p.of].Seconds() / costs[p.by].Seconds()
		word := "kept"
		if ratio >= p.most {
			word, kept = "BROKEN", false
		}
		fmt.Fprintf(out, "%-7s %s, %v path, %s: %s, below %s\n", word, p.of.what, p.of.path, p.text, fraction(ratio), fraction(p.most))
	}
	return kept
}

// fraction prints small ratios as 1/n.
func fraction(ratio float64) string {
	if ratio >= 0.9 {
		return fmt.Sprintf("%.2f", ratio)
	}
	return fmt.Sprintf("1/%.1f", 1/ratio)
}
