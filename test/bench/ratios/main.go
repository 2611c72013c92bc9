// Ratios measures Step Beyond beside the other engines under one policy, prints what the product promises about the
// cost of a decision as ratios within the run, and exits 1 when a promise is not kept.
//
// It counts the CPU time of its own process, garbage collection included, so that other work on the machine disturbs
// little; engines take turns in short slices, and the median of their slices counts.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 11, "slices per engine")
	slice := flag.Duration("slice", 20*time.Millisecond, "length of one slice")
	flag.Parse()
	kept, err := report(os.Stdout, *rounds, *slice)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
	if !kept {
		os.Exit(1)
	}
}
