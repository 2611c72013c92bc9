// Command demo runs the story of Step Beyond on a real control plane, with the real kubectl as four users, and compares
// every answer with wanted.tsv. It ends with 1 when a row differs.
//
//	KEEP=1                 leaves everything running until Ctrl-C
//	VERBOSE=1              also prints each command line and what kubectl printed
//	MUTATE=rbac|cas|floor  breaks one thing that the story rests on; a row must notice
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, options{
		out:      os.Stdout,
		mutation: mutation(os.Getenv("MUTATE")),
		keep:     os.Getenv("KEEP") != "",
		verbose:  os.Getenv("VERBOSE") != "",
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
