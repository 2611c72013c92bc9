package certs

import (
	"errors"
	"flag"
	"fmt"
	"time"
)

// Timing says how long certificates live and how a rotation waits.
type Timing struct {
	// AuthorityLifetime of a new authority. An installation that stood still for less starts again without help.
	AuthorityLifetime time.Duration
	// LeafLifetime of a serving certificate, which is renewed after two thirds of it.
	LeafLifetime time.Duration
	// RotateEvery is the age at which authority and secret path are replaced; less than AuthorityLifetime, and the
	// difference is the time in which somebody can find out why it does not happen.
	RotateEvery time.Duration
	// Settle is how long a webhook configuration has to stand, and all replicas have to be ready for it, before what it
	// allows is used: longer than any API server needs to notice a changed configuration.
	Settle time.Duration
	// Overlap is how long the old authority and path stay good after everything uses the new ones; at least Settle.
	Overlap time.Duration
	// Poll is how often each replica reads the Secret and says what it serves.
	Poll time.Duration
}

// DefaultTiming is for production. API servers notice a configuration within a second or two, and within a minute also
// when their watch broke. A year and 90 days leave nine months in which a rotation that is stuck hurts nobody.
func DefaultTiming() Timing {
	const day = 24 * time.Hour
	return Timing{
		AuthorityLifetime: 365 * day, LeafLifetime: 90 * day, RotateEvery: 90 * day,
		Settle: time.Minute, Overlap: 10 * time.Minute, Poll: 10 * time.Second,
	}
}

// missedPolls make a replica gone for the leader; half of them make it unready.
const missedPolls = 30

// GoneAfter is how long the leader waits for a replica that says nothing any more. A replica that could say nothing for
// half of it is not ready.
func (t Timing) GoneAfter() time.Duration { return missedPolls * t.Poll }

// RestoredWithin is how long a replica that starts waits for another one to put a deleted Secret back: the leader does so
// with its next poll, and by default there is time for another one to become leader first.
func (t Timing) RestoredWithin() time.Duration { return 3 * t.Poll }

// Bind adds the fields to a flag set; what they hold is the default.
func (t *Timing) Bind(flags *flag.FlagSet) {
	flags.DurationVar(&t.AuthorityLifetime, "authority-lifetime", t.AuthorityLifetime, "life of a new certificate authority of the webhook")
	flags.DurationVar(&t.LeafLifetime, "certificate-lifetime", t.LeafLifetime, "life of a serving certificate, which is renewed after two thirds of it; at most authority-lifetime")
	flags.DurationVar(&t.RotateEvery, "rotate-every", t.RotateEvery, "age at which the authority and the secret path are replaced; less than authority-lifetime")
	flags.DurationVar(&t.Settle, "rotation-settle", t.Settle, "wait before what a webhook configuration allows is used")
	flags.DurationVar(&t.Overlap, "rotation-overlap", t.Overlap, "how long the old authority and path stay good; at least rotation-settle")
	flags.DurationVar(&t.Poll, "rotation-poll", t.Poll, "how often each replica reads the installation's Secret and says what it serves")
}

var errNotPositive = errors.New("is not positive")

// Validate names the flag that is wrong.
func (t Timing) Validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"authority-lifetime", t.AuthorityLifetime}, {"certificate-lifetime", t.LeafLifetime}, {"rotate-every", t.RotateEvery},
		{"rotation-settle", t.Settle}, {"rotation-overlap", t.Overlap}, {"rotation-poll", t.Poll},
	} {
		if f.value <= 0 {
			return fmt.Errorf("%s: %s %w", f.name, f.value, errNotPositive)
		}
	}
	switch {
	case t.LeafLifetime > t.AuthorityLifetime:
		return fmt.Errorf("certificate-lifetime: %s is longer than authority-lifetime, %s", t.LeafLifetime, t.AuthorityLifetime)
	case t.RotateEvery >= t.AuthorityLifetime:
		return fmt.Errorf("rotate-every: %s is not less than authority-lifetime, %s", t.RotateEvery, t.AuthorityLifetime)
	case t.Overlap < t.Settle:
		return fmt.Errorf("rotation-overlap: %s is less than rotation-settle, %s", t.Overlap, t.Settle)
	}
	return nil
}
