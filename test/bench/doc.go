// Package bench asks several engines the same questions under one policy and measures what each answer costs. It is a
// module of its own, so that the product does not depend on the engines that it is compared with.
//
// # The equal policy
//
// A [Policy] of n rules has four fixed rules on attributes and n-4 selector rules of five or six conjuncts: capability,
// tool, verb in a set, target prefix, cost limit and, in two of three, reversible or confident. Four selector rules
// speak of each tool. Every rule is evaluated, the strictest class of those that match wins, and no match is ASK. The
// measured request matches the last rule but one and no other. What an engine is asked is a [Request], a Go struct;
// turning it into the engine's own input is part of what is measured, reading JSON is not.
//
// In the rule language of Step Beyond a selector is structured and indexed: the capability is the API group, the tool
// the resource, the target prefix a name with a wildcard. Cost, reversibility and confidence are content of the object,
// which only a rule's expression reads. A rule that permits (AUTO, AUTO_WITH_DISCLOSURE) is a catalogue entry, one that tightens (ASK,
// FORBIDDEN) a rule, and the four fixed rules are floors of facts.
//
// Cedar is asked twice: with every conjunct in the condition, in the order and over the input that the other languages
// get (cedar-go, which the bounds are stated about), and with capability and tool in the policies' scope
// (cedar-go-scoped), which fails sooner.
//
// # The Kubernetes policy
//
// A [KubePolicy] of n rules has four fixed rules that read the object (host namespaces and privileged containers are
// FORBIDDEN, host ports are ASK, an own ordinary object is AUTO) and n-4 selector rules of six conjuncts: group,
// resource, verb in a set, name prefix, replicas above a limit, not labelled as development. Step Beyond decides it
// with its own parsers and baseline, which look at more than these rules do. The AUTO request matches no selector rule,
// the ASK request the last but one.
//
// # Running
//
// Here, "go test -bench . -benchmem" prints every engine's times and allocations, and "go run ./ratios" the ratios that
// the product promises, which fail the run when they are not kept. Tests assert classes and allocations, never times.
package bench
