// Admission measures what Step Beyond costs the writes of an API server: throughput, CPU time per write, and how often
// somebody who is not governed reaches the manager. It prints a table and what the product promises, and exits 1 when a
// promise is not kept.
//
// Each configuration has a control plane of its own, because an API server looks at every configuration for every
// request: one without any, one with a controller-runtime webhook that allows everything and runs in its own process,
// one with a ValidatingAdmissionPolicy that excludes the caller, and one with Step Beyond. All have the same flags and
// the same kind of caller, a ServiceAccount with every right and a token that is bound to a Pod. Only one of them is
// written to at a time.
//
// Sixteen clients with a connection each create, update and delete small ConfigMaps. The contenders take turns in blocks
// of a fraction of a second, each round in another order. A ratio is that of two blocks of the same round, so that what
// else the machine does disturbs both; the median over all rounds counts.
package main
