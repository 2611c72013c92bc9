package policy

// ScopeType is the width of an answer.
type ScopeType string

// Scopes, from narrow to wide.
const (
	ScopeExact     ScopeType = "Exact"
	ScopeSession   ScopeType = "Session"
	ScopeTimeBoxed ScopeType = "TimeBoxed"
)

// WiderThan compares widths. A scope that nobody knows is wider than any that is known.
func (s ScopeType) WiderThan(other ScopeType) bool { return s.rank() > other.rank() }

func (s ScopeType) rank() int {
	switch s {
	case ScopeExact:
		return 0
	case ScopeSession:
		return 1
	case ScopeTimeBoxed:
		return 2
	default:
		return 3
	}
}

// WidthBounds are the strictest bounds of an answer, and the policies that set them. An ID is empty where none does.
type WidthBounds struct {
	Widest   ScopeType
	WidestBy PolicyID
	// Seconds bound a time box, Uses the operations that a wider answer covers.
	Seconds   int32
	SecondsBy PolicyID
	Uses      int32
	UsesBy    PolicyID
}

// WidthBounds joins what the policies of the session's and the target's namespace say of answers to the strictest. What is
// not known is Exact: a governed namespace without its profile, a scope that nobody knows, a bound that is not set.
func (e *Engine) WidthBounds(sessionNamespace, targetNamespace string) WidthBounds {
	var b WidthBounds
	_, governed := e.namespaces[targetNamespace]
	known := e.Governs(sessionNamespace) && (!governed || e.Governs(targetNamespace))
	for _, layer := range e.layers(sessionNamespace, targetNamespace) {
		a := &layer.approvals
		known = known && (a.WidestScope == "" || !a.WidestScope.WiderThan(ScopeTimeBoxed))
		if a.WidestScope != "" && (b.Widest == "" || b.Widest.WiderThan(a.WidestScope)) {
			b.Widest, b.WidestBy = a.WidestScope, layer.id
		}
		if joined := stricter(b.Seconds, a.MaxTimeBoxSeconds, false); joined != b.Seconds {
			b.Seconds, b.SecondsBy = joined, layer.id
		}
		if joined := stricter(b.Uses, a.MaxTimeBoxUses, false); joined != b.Uses {
			b.Uses, b.UsesBy = joined, layer.id
		}
	}
	if !known || b.Widest == "" || b.Seconds < 1 || b.Uses < 1 {
		b.Widest = ScopeExact
	}
	return b
}
