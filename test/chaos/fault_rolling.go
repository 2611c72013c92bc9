package main

import "context"

// manyWriters write once per second each.
const manyWriters = 100

func rollingRestart() *row {
	return &row{
		name: "rolling-restart", title: "Rolling restart at 100 governed writes per second",
		auto: "allowed", writers: manyWriters, args: []string{"--shutdown-delay=5s"}, // as in production
		done:     "Each replica in turn is stopped with SIGTERM, started, and waited for until it is ready, twice, while the agent makes 100 ConfigMaps per second.",
		expected: "AUTO is allowed: an ending replica answers for five more seconds and has its connections closed one by one.",
		begin: func(ctx context.Context, s *scene) error {
			for range 2 {
				for _, m := range s.managers {
					s.balancer.Remove(m.WebhookAddress()) // as a Service does with a Pod that ends, until the next is ready
					if err := m.Stop(); err != nil {
						return err
					}
					if err := s.startManagers(ctx); err != nil {
						return err
					}
					s.balancer.Add(m.WebhookAddress())
				}
			}
			return nil
		},
		end: settled,
	}
}
