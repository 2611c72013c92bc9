package main

import "fmt"

// verdict says what is wrong with a row; nothing is a good row. A time is never wrong.
func verdict(r *row, m *measured) []string {
	var bad []string
	wrong := func(condition bool, format string, args ...any) {
		if condition {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	b, g := m.Bystander, m.Grants
	wrong(m.Forbidden.Sent == 0 || m.Forbidden.Sent == m.Forbidden.Away, "no FORBIDDEN was answered")
	wrong(m.Forbidden.Passed > 0, "FORBIDDEN passed %d times", m.Forbidden.Passed)
	wrong(m.Ask.Sent == 0 || m.Ask.Sent == m.Ask.Away, "no ASK was answered")
	if r.exposed == "" {
		wrong(m.Ask.Passed > 0, "ASK passed %d times without a grant", m.Ask.Passed)
	} else {
		wrong(m.PassedGuarded > 0, "ASK passed %d times without a grant after it had been refused again", m.PassedGuarded)
	}
	wrong(m.Auto.Sent == 0, "no AUTO was sent")
	wrong(m.Auto.Unstamped > 0 && r.exposed == "", "AUTO passed %d times without the manager", m.Auto.Unstamped)
	wrong(b.Leases == 0 || b.Writes == 0 || b.Reads == 0, "bystanders sent %d renewals, %d writes, %d reads", b.Leases, b.Writes, b.Reads)
	wrong(b.Denied > 0, "bystanders were denied %d times: %q", b.Denied, b.Denials)
	wrong(b.Other > 0, "bystanders failed %d times for no known reason: %q", b.Other, b.Denials)
	for kind, n := range b.Away {
		wrong(m.Bare == nil || m.Bare.Away[kind] == 0, "bystanders failed %d times with %q, which they do not without Step Beyond", n, kind)
	}
	wrong(!m.Recovered, "it did not recover")
	wrong(g.Lost > 0, "%d grants were lost", g.Lost)
	wrong(g.Doubled > 0, "%d grants had more than one effect", g.Doubled)
	wrong(g.AskedAgain > 0 && !r.asksAgain, "%d approvals were lost and had to be given again", g.AskedAgain)
	answered := g.Meanwhile + g.Kept + g.AskedAgain + g.Lost + g.Doubled + g.PendingAnswered
	wrong(answered != g.Approved+1, "%d of %d grants are accounted for", answered, g.Approved+1)
	return bad
}
