package main

import (
	"context"
	"fmt"
	"time"
)

// warmUps are rounds that are not counted: connections open, and caches and heaps grow to their size.
const warmUps = 2

// cost of one write, as one block has it.
type cost struct {
	wall                     time.Duration
	apiServer, etcd, webhook time.Duration // CPU time
}

// costs of each contender and operation, one a round.
type costs map[string]map[operation][]cost

// measure lets the contenders take turns.
func measure(ctx context.Context, contenders []*contender, o options, progress func(string, ...any)) (costs, error) {
	found := costs{}
	for _, c := range contenders {
		found[c.name] = map[operation][]cost{}
	}
	for round := range o.rounds + warmUps {
		if round%5 == 0 {
			progress("round %d of %d", round+1, o.rounds+warmUps)
		}
		for _, do := range operations {
			for turn := range contenders {
				c := contenders[(turn+round)%len(contenders)]
				block, err := c.block(ctx, do, o.writes)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				if round >= warmUps {
					found[c.name][do] = append(found[c.name][do], block)
				}
			}
		}
	}
	return found, nil
}

// block writes n times and says what one write cost.
func (c *contender) block(ctx context.Context, do operation, n int) (cost, error) {
	before, err := c.used()
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	if err := c.writers.write(ctx, do, n); err != nil {
		return cost{}, err
	}
	wall := time.Since(began)
	after, err := c.used()
	if err != nil {
		return cost{}, err
	}
	writes := time.Duration(n)
	return cost{
		wall: wall / writes, apiServer: (after.apiServer - before.apiServer) / writes,
		etcd: (after.etcd - before.etcd) / writes, webhook: (after.webhook - before.webhook) / writes,
	}, nil
}

// used is the CPU time of the processes behind the contender until now.
func (c *contender) used() (used cost, err error) {
	if used.apiServer, err = c.plane.CPU("kube-apiserver"); err != nil {
		return used, err
	}
	if used.etcd, err = c.plane.CPU("etcd"); err != nil {
		return used, err
	}
	if c.webhookCPU != nil {
		used.webhook, err = c.webhookCPU()
	}
	return used, err
}
