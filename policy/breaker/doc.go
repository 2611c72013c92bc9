// Package breaker observes calls that bring nothing new. It gives telemetry and a recovery hypothesis, and it has no say
// in whether a call runs: no type of this package holds a verdict (requirement L-1).
//
// Two calls are the same when action, inputs, state, source, environment, authority and result are. The action is a
// label and is never enough alone; what is not known equals nothing (L-3). Any difference in any of them starts the
// count anew, so asking again after a change, or getting another answer, is never a signal. That is what agents do: in
// 197 recorded Kubernetes runs no call occurs three times with the same result, while asking the same again and getting
// a different answer is common.
//
// The package is pure. A [Window] is plain data that the caller keeps in memory and never has to store.
package breaker
