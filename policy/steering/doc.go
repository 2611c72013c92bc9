// Package steering is what a person's change of mind does to a running session, as a pure state machine.
//
// A [State] is plain data: it survives a restart, a change of replica and a successor session by being written down and
// read back. An [Event] goes in with [State.Apply] and a new State, or a [Rejection] that changed nothing, comes out.
//
// Steering of scope, safety, priority or plan is an authority transition (requirements ): it raises the epoch,
// what has started completes, and from the next safe boundary on the writes of the old plan are held until the agent
// has answered with a [Reconciliation]. Context halts nothing. A hold is steering state and says which input it
// comes from; it is never a failure and never a loop.
//
// The package knows no clock and no store. Every event carries its time; the caller makes sure that an event is
// applied to the newest State only (a compare-and-swap on the object that carries it).
package steering
