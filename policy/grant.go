package policy

import "time"

// answerGrant takes a grant of the exact operation, and where none can be used a wider approval that covers it. A denial
// of the exact operation outweighs both: who denied it saw precisely this.
func answerGrant(q *question) bool {
	answerExact(q)
	if q.decision.Verdict != VerdictPending {
		return true
	}
	g := q.coveringGrant()
	if g == nil {
		return true
	}
	q.decision.AskNew, q.decision.Grant = false, g.ref()
	return q.answer(VerdictAllow, ReasonGranted)
}

func (g *Grant) ref() *GrantRef {
	return &GrantRef{
		Name: g.Name, Until: g.Expiration, Approvals: g.Approvals, Required: g.Required,
		Closed: g.Closed, ClosedBy: g.ClosedBy, ClosedWhy: g.ClosedWhy,
	}
}

// answerExact says what the newest question about the exact operation is good for. Everything that binds a grant is
// compared here (requirement G-2); a grant that fails a comparison is never used and a new question takes its place.
func answerExact(q *question) bool {
	g := q.session.Grant
	if g == nil {
		q.decision.AskNew = true
		return q.answer(VerdictPending, ReasonPermissionPending)
	}
	q.decision.Grant = g.ref()
	if reason := g.misfit(q); reason != "" {
		return q.askAnew(reason)
	}
	switch g.State {
	case GrantPending:
		if g.expired(q.now) {
			return q.askAnew(ReasonGrantExpired)
		}
		q.decision.Grant.Waiting = true
		return q.answer(VerdictPending, ReasonPermissionPending)
	case GrantApproved:
		return answerApproved(q, g)
	case GrantDenied:
		again := g.Closed.Add(time.Duration(q.decision.Approvals.AskAgainAfterSeconds) * time.Second)
		if q.now.Before(again) && !g.Reopened {
			q.decision.Grant.AskAgain = again
			return q.answer(VerdictDeny, ReasonGrantDenied)
		}
		q.decision.AskNew = true
		return q.answer(VerdictPending, ReasonPermissionPending)
	case GrantExhausted:
		return q.askAnew(ReasonGrantUsed)
	case GrantRevoked:
		return q.askAnew(ReasonGrantRevoked)
	case GrantSuperseded:
		if g.CoveredBy != "" {
			return q.askAnew(ReasonPermissionPending) // nobody took anything back: the wider approval is spent
		}
		return q.askAnew(ReasonGrantSuperseded)
	case GrantStale:
		return q.askAnew(ReasonGrantStale)
	default:
		return q.askAnew(ReasonGrantExpired)
	}
}

func answerApproved(q *question, g *Grant) bool {
	switch {
	case g.UsesLeft < 1:
		return q.askAnew(ReasonGrantUsed)
	case g.expired(q.now):
		return q.askAnew(ReasonGrantExpired)
	case g.PolicyIdentity != q.decision.PolicyIdentity:
		return q.askAnew(ReasonGrantStale)
	}
	return q.answer(VerdictAllow, ReasonGranted)
}

// misfit names what the grant was given for that this request is not; empty when it fits.
func (g *Grant) misfit(q *question) Reason {
	switch {
	case g.Digest == "" || g.Digest != q.op.Digest:
		return ReasonGrantDigestMismatch
	case g.SessionUID != q.session.UID || g.Requester != q.session.Username:
		return ReasonGrantWrongSession
	case g.Epoch != q.session.Epoch:
		return ReasonGrantSuperseded
	case g.Stage != q.op.Stage:
		return ReasonGrantWrongStage
	default:
		return ""
	}
}

func (g *Grant) expired(now time.Time) bool {
	return g.Expiration.IsZero() || !now.Before(g.Expiration)
}

func (q *question) askAnew(reason Reason) bool {
	q.decision.AskNew = true
	return q.answer(VerdictPending, reason)
}
