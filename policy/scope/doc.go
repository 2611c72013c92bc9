// Package scope finds the words with which a user limits an agent to exactly what was asked, and keeps the strict
// scope that follows from them (requirements S-1 to S-4).
//
// A [Detector] is compiled from [Lexicon] values, which are data: the embedded English and Polish ones, extended or
// joined by a policy. [Detector.Detect] reports every limiting word it sees and says which of them limit the agent's
// work ([KindLimit]) and which do not: "egress only to pods in ns2" bounds the content of the task, "not only" bounds
// nothing, and code, quotes and identifiers are not the user's own words. [Next] is the state machine: on by a limit
// from the user, kept across turns, off by the user's explicit broadening alone.
//
// Nothing here keeps instruction text. A finding holds the lexicon's spelling of the phrase, never the message's.
package scope
