package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	kept, err := measureAll()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-admission:", err)
	}
	if err != nil || !kept {
		os.Exit(1)
	}
}

func measureAll() (kept bool, err error) {
	log.SetLogger(logr.Discard()) // what the clients would say is in their errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.rounds, "rounds", 30, "blocks of each contender and operation")
	flag.IntVar(&o.writes, "writes", 480, "writes in a block")
	flag.IntVar(&o.bystander, "bystander", 100_000, "writes of a bystander that must reach no webhook")
	bare := flag.Bool("serve-bare", false, "serve the bare webhook until standard input ends; for the program itself")
	flag.Parse()
	if *bare {
		return true, serveBare(ctx)
	}
	return run(ctx, o)
}
