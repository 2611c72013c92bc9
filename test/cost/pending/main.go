// Pending measures what a queue costs who reads it: kubectl stepbeyond pending -A beside kubectl get permissiongrants -A,
// in turns, on one real control plane that holds -grants waiting questions. It prints processor time of the program and
// time on the clock for both, with their ratio, and exits 1 when the promised ratio is missed. No absolute time is
// promised, because a machine is not.
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
	log.SetLogger(logr.Discard()) // what the clients would say is in their errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	grants := flag.Int("grants", 5000, "waiting questions")
	rounds := flag.Int("rounds", 15, "how often each is run")
	flag.Parse()
	kept, err := run(ctx, *grants, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-pending:", err)
	}
	if err != nil || !kept {
		os.Exit(1)
	}
}
