// Package tier says how much scaffolding is likely to be useful to the model behind a session (requirements T-1 to T-7).
//
// A tier is no claim about intelligence and no permission: authority, classes and safety are the same for all. What this
// package returns is advice that stands beside an engine's decision. It does not import the engine, so it has no words in
// which it could allow, refuse or classify anything; there is no gate in it either (requirement T-7).
package tier
