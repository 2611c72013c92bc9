// Package tool reads tool calls for the engine: [Operation] finds the facts that name, description and arguments of a
// call tell.
//
// The package is pure. It reads words and shapes, never annotations or hints: what a tool's server says about itself is
// declared, and what is declared only raises a class (requirement C-4). A tool that it does not understand has unknown
// facts and is ASK; a catalogue of the platform can say more.
//
// # Pure reads
//
// A call is a pure read when its name has a verb of reading ("list_pods", "podsList", "issue-read"), or ends in what is
// read ("pods_log") and its description begins with such a verb, when the name has no verb of changing,
// and neither description nor arguments contradict: a description that begins with or goes on to a verb of changing, an
// argument that holds a command, a statement that writes, or an action other than reading. So is a call of an accessor
// ("Get or update the scale. If the scale is set, it will be updated") that gives some arguments and none that sets. Then what is not known does
// not count and the call is AUTO, unless a harm is known:
//
//	secrets, passwords, tokens, keys by name or   Credentials                  ASK
//	  argument, or as a value
//	an address that carries data: a query, a user Sends                        ASK
//
// # Everything else
//
// What is parsed of other calls, each ASK by itself (requirements C-2, C-7). All that is not parsed stays unknown, so no
// call becomes harmless by what its words do not say:
//
//	words of losing (delete, drop, cancel, ...)   Destructive
//	words of sending, a recipient                 Sends
//	words of publishing, an address outside       External
//	words of money, an amount                     Cost
//	words of access (grant, unlock, role, ...)    Security
//	words of secrets, an argument that is one     Credentials
//	"all" or "bulk" in the name, "*" as an        Unbounded
//	  argument
//	a value that is a secret, in a call that      ExfiltratesSecret (FORBIDDEN)
//	  sends or publishes
package tool
