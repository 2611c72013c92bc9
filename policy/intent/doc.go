// Package intent holds what an agent thinks was asked for: two to four materially distinct hypotheses (requirements
// I-1, I-2), and what to do about the one it would act on (D-1 to D-5).
//
// Nothing here allows or prevents a call. A rejected set of hypotheses or an open question is planning state, and
// planning state denies nothing (requirement B-6); whether an operation may run is the engine's decision alone.
package intent
