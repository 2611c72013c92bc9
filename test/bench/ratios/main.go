// Ratios measures Step Beyond beside the other engines under one policy, prints what the product promises about the
// cost of a decision as ratios within the run, and exits 1 when a promise is not kept.
//
// Each engine runs in a process of its own, as it would in production, so that it pays for its own garbage and for
// nobody else's. What counts is the CPU time of that process, garbage collection included. Other work on the machine makes
// that longer as well, by caches and cores that are shared, and not for every engine alike: so engines take turns in short
// slices, in another order each round, and of each the lower quartile of its slices counts. Four contenders decide each
// group of promises. They take turns among themselves and often, so that a minute of noise meets all of them; the others
// are only printed and have fewer slices.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 36, "slices of each contender that a promise is about; the others have a quarter")
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
