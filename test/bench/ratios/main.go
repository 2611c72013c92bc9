// Ratios measures Step Beyond beside the other engines under one policy, prints what the product promises about the
// cost of a decision as ratios within the run, and exits 1 when a promise is not kept.
//
// Each engine runs in a process of its own, as it would in production, so that it pays for its own garbage and for
// nobody else's. What counts is the CPU time of that process, so that other work on the machine disturbs little; engines
// take turns in short slices, and the lower quartile of their slices counts.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 9, "slices per engine")
	slice := flag.Duration("slice", 80*time.Millisecond, "length of one slice")
	contender := flag.String("contender", "", "run as this one of the contenders, and take orders from standard input")
	flag.Parse()
	if *contender != "" {
		if err := contend(*contender, *slice, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "ratios:", err)
			os.Exit(1)
		}
		return
	}
	kept, err := report(os.Stdout, *rounds, *slice)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
	if !kept {
		os.Exit(1)
	}
}
