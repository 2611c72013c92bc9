package main

import (
	"slices"
	"time"
)

// measured is what a row's probes saw. It is kept as JSON, so that rows that are run alone take their place.
type measured struct {
	Row string
	// Forbidden and Ask count the probes from the beginning of the fault until everything was over, Auto those that were
	// sent and answered while it lasted.
	Forbidden, Ask, Auto counts
	// AutoPerSecond is the rate at which they were sent.
	AutoPerSecond float64
	// Exposed is how long after the beginning of the fault an ASK last passed, and PassedGuarded how many passed after one
	// had been refused as before.
	Exposed       time.Duration
	PassedGuarded int
	Bystander     bystander
	// Bare is the bystander under the same fault in a cluster without Step Beyond; nil where that was not measured.
	Bare *bystander
	// Recovery is the time from the end of the fault, or from its beginning where nothing ends it.
	Recovery  time.Duration
	Recovered bool
	Grants    grantCounts
}

// counts of the answers of one kind of request.
type counts struct {
	Sent, Passed int
	// Forbidden were refused with 403, Refused with another 4xx or 5xx.
	Forbidden, Refused int
	// Away had no answer that says anything about admission, because the API server itself was away.
	Away int
	// Unstamped of those that passed went past the manager.
	Unstamped int
}

// bystander is what happened to those who are not governed.
type bystander struct {
	Leases, Writes, Reads, Denied int
	Denials                       []string // some of the messages
	// Away counts the failures by kind.
	Away           map[string]int
	Before, During time.Duration // medians of writes
	Other          int           // failures that are of no kind
}

type grantCounts struct {
	// Approved before the fault. Each of them is exactly one of: Meanwhile, used while the fault lasted; Kept, used after
	// it; AskedAgain, used after a new approval; Lost, without an effect; Doubled, with more than one.
	Approved, Meanwhile, Kept, AskedAgain, Lost, Doubled int
	// PendingAnswered is 1 when the pending question could be answered and had its one effect.
	PendingAnswered int
}

func (m *measured) read(c *callers, w window, bare bool) {
	now := time.Now()
	m.Bystander = c.hurt(w)
	m.Recovery, m.Recovered = w.recovered.Sub(w.healing), w.ok
	if bare {
		return
	}
	asked := c.ask.between(w.begin, now)
	during := slices.DeleteFunc(c.auto.between(w.begin, w.end), func(p probe) bool { return p.answered.After(w.end) })
	m.Forbidden, m.Ask, m.Auto = count(c.forbidden.between(w.begin, now)), count(asked), count(during)
	m.AutoPerSecond = float64(len(c.auto.between(w.begin, w.end))) / w.end.Sub(w.begin).Seconds()
	var guarded time.Time // when the first ASK was refused as before
	for _, p := range asked {
		if p.before && (guarded.IsZero() || p.answered.Before(guarded)) && m.Exposed > 0 {
			guarded = p.answered
		}
		if p.passed() {
			m.Exposed = max(m.Exposed, p.sent.Sub(w.begin))
			if !guarded.IsZero() && p.sent.After(guarded) {
				m.PassedGuarded++
			}
		}
	}
}

func count(probes []probe) counts {
	var n counts
	for _, p := range probes {
		n.Sent++
		switch {
		case p.Unstamped:
			n.Passed++
			n.Unstamped++
		case p.passed():
			n.Passed++
		case p.Away != "":
			n.Away++
		case p.Code == 403:
			n.Forbidden++
		default:
			n.Refused++
		}
	}
	return n
}

const someDenials = 3

// hurt counts what bystanders met since the beginning of the fault; their median is that of the fault itself.
func (c *callers) hurt(w window) bystander {
	now := time.Now()
	leases, writes, reads := c.leases.between(w.begin, now), c.writes.between(w.begin, now), c.reads.between(w.begin, now)
	b := bystander{Leases: len(leases), Writes: len(writes), Reads: len(reads), Away: map[string]int{}}
	for _, probes := range [][]probe{leases, writes, reads} {
		for _, p := range probes {
			switch {
			case p.passed():
			case p.Admission || p.Code == 403 && p.Away == "":
				b.Denied++
				if len(b.Denials) < someDenials {
					b.Denials = append(b.Denials, p.Message)
				}
			case p.Away != "":
				b.Away[p.Away]++
			default:
				b.Other++
				if len(b.Denials) < someDenials {
					b.Denials = append(b.Denials, p.Message)
				}
			}
		}
	}
	b.Before = medianOf(c.leases.between(w.baseline, w.begin), c.writes.between(w.baseline, w.begin))
	b.During = medianOf(c.leases.between(w.begin, w.end), c.writes.between(w.begin, w.end))
	return b
}
