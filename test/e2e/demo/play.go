package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// player plays the steps of a story on a cluster.
type player struct {
	cluster   *cluster
	opts      options
	variables map[string]string // of later command lines
	count     int
}

// effectTimeout bounds how long controllers may take until the effect of a step is as wanted. The canary asks every
// 30 s, so enforcement may need that long to be proven.
const effectTimeout = time.Minute

// effectInterval is the time between two looks at an effect.
const effectInterval = 250 * time.Millisecond

// play plays every step. With a mutation it ends at the first row that notices, since that is all a mutation is for.
func (p *player) play(ctx context.Context, steps []step, wanted map[string]row) error {
	var differing []string
	for _, s := range steps {
		if s.Do != "" {
			if err := p.act(ctx, s.Do); err != nil {
				return fmt.Errorf("%s: %w", s.Do, err)
			}
			continue
		}
		differs, err := p.row(ctx, s, wanted[s.Step])
		if err != nil {
			return fmt.Errorf("step %s: %w", s.Step, err)
		}
		if differs {
			differing = append(differing, s.Step)
			if p.opts.mutation != "" {
				break
			}
		}
	}
	if len(differing) > 0 {
		return &differsError{differing}
	}
	if p.opts.mutation != "" {
		return nil
	}
	fmt.Fprintf(p.opts.out, "demo: all %d rows are as wanted\n", p.count)
	return nil
}

func (p *player) act(ctx context.Context, do action) error {
	switch do {
	case getAgentToken:
		p.opts.progress("get the agent a token bound to its pod")
		return p.cluster.giveAgentToken(ctx)
	case applyMutation:
		return p.cluster.mutate(ctx, p.opts)
	case killManager:
		p.opts.progress("kill the manager")
		return p.cluster.manager.Kill()
	case startManager:
		return p.cluster.startManager(ctx, p.opts)
	default:
		return fmt.Errorf("unknown action %q", do)
	}
}

// row plays one step, prints its line and says whether it differs.
func (p *player) row(ctx context.Context, s step, want row) (bool, error) {
	answers, err := p.ask(ctx, s)
	if err != nil {
		return false, err
	}
	got := observe(answers[0], s.Says)
	if s.Times > 1 {
		got = crowd(answers)
	}
	got.Step, got.Who, got.What = s.Step, string(s.Who), s.What
	p.remember(ctx, s, answers[0].output)
	got.Effect = p.effect(ctx, s, want)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	p.count++
	differences := got.differences(want)
	p.print(s, got, differences, answers)
	if p.opts.onRow != nil {
		p.opts.onRow(got, differences)
	}
	return len(differences) > 0, nil
}

// ask runs the command line of a step, as often at the same moment as it says. Every answer of a crowd gets the audit
// events of the whole crowd: one process cannot be told from another there.
func (p *player) ask(ctx context.Context, s step) (_ []answer, err error) {
	answers := make([]answer, max(1, s.Times))
	if s.Times > 1 {
		stop, contendErr := p.cluster.contend(ctx, s.Times)
		if contendErr != nil {
			return nil, contendErr
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	mark, err := p.cluster.env.AuditMark()
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			output, err := p.cluster.shell(ctx, s.Who, s.Run, p.variables)
			answers[i] = answer{output: output, failed: err != nil}
		})
	}
	wg.Wait()
	events, err := p.cluster.env.AuditSince(mark, username(s.Who))
	if err != nil {
		return nil, err
	}
	for i := range answers {
		answers[i].events = events
	}
	return answers, nil
}

// crowd is the one row of many answers: how many the webhook let through, and how many of those had an effect.
func crowd(answers []answer) row {
	var r row
	allowed, effects := 0, 0
	for _, a := range answers {
		one := observe(a, "")
		if one.By != enforcer {
			allowed++
			r.Class = one.Class
		}
		if !a.failed {
			effects++
		}
	}
	r.Verdict = fmt.Sprintf("%s for %d of %d", verdictAllow, allowed, len(answers))
	r.Because = fmt.Sprintf("effects: %d", effects)
	return r
}

// remember sets the variables that a step's question gives.
func (p *player) remember(ctx context.Context, s step, output string) {
	if s.Question == "" {
		return
	}
	name := grantName.FindString(output)
	p.variables[s.Question] = name
	p.variables["APPROVE"] = "false"
	if name == "" {
		return // the row shows it
	}
	line := "kubectl get permissiongrant " + name + " -o jsonpath='{.status.approveCommand}'"
	p.variables["APPROVE"] = p.until(ctx, line, func(out string) bool { return out != "" })
}

// effect looks at a step's effect until it is as wanted or the time is up, and returns what it saw last.
func (p *player) effect(ctx context.Context, s step, want row) string {
	if s.Effect == "" {
		return ""
	}
	return oneLine(p.until(ctx, s.Effect, func(out string) bool { return oneLine(out) == want.Effect }))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// until runs a command line as platform until its output is good, at most effectTimeout, and returns the last output.
func (p *player) until(ctx context.Context, line string, good func(string) bool) string {
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	ticker := time.NewTicker(effectInterval)
	defer ticker.Stop()
	last := ""
	for {
		out, err := p.cluster.shell(ctx, platform, line, p.variables)
		if ctx.Err() == nil { // else it was cut off
			last = strings.TrimSpace(out)
		}
		if err == nil && good(last) {
			return last
		}
		select {
		case <-ctx.Done():
			return last
		case <-ticker.C:
		}
	}
}
