package rotation

import (
	"fmt"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/internal/certs"
)

// view is what the leader knows at one moment.
type view struct {
	phase certs.Phase
	// due is why a steady installation has to be rotated; empty when it has not.
	due string
	// inForce tells that both webhook configurations, read back, say what the phase needs.
	inForce bool
	// replicas that live, and the holders of those that do not serve what the next step needs.
	replicas int
	lagging  []string
	// proven tells that webhook and floor refuse the canary.
	proven bool
}

// waitsFor is what the next step waits for, apart from time; empty when it waits for nothing. A rotation also begins while
// nothing is proven, because it is the way out when a certificate has expired; it does not end then, because what is old
// can only help.
func (v view) waitsFor() string {
	switch {
	case v.phase == certs.PhaseSteady && v.due == "":
		return "a rotation to be due"
	case v.phase == certs.PhaseSteady:
		return ""
	case !v.inForce:
		return "the webhook configurations"
	case v.replicas == 0:
		return "a replica that says what it serves"
	case len(v.lagging) > 0:
		return fmt.Sprintf("%d of %d replicas: %s", len(v.lagging), v.replicas, strings.Join(v.lagging, ", "))
	case v.phase == certs.PhaseOverlapping && !v.proven:
		return "a proof of the enforcement"
	default:
		return ""
	}
}

// holds is how long the next step has to have waited for nothing.
func (v view) holds(timing certs.Timing) time.Duration {
	switch v.phase {
	case certs.PhaseDistributing:
		return timing.Settle
	case certs.PhaseOverlapping:
		return timing.Overlap
	default:
		return 0
	}
}

// hold is how long something has been as it is.
type hold struct {
	what  string
	since time.Time
}

// lasted is how long it has been what; begun now when it was something else before.
func (h *hold) lasted(what string, now time.Time) time.Duration {
	if h.what != what {
		*h = hold{what, now}
	}
	return now.Sub(h.since)
}
