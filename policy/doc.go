// Package policy is the engine of Step Beyond: one question, one answer. An [Operation] and a [SessionView] go
// in, a [Decision] comes out.
//
// The package is pure. It knows no Kubernetes client, clock, logger, goroutine or global: the same inputs give the
// same Decision. Everything that an answer depends on, the time included, is an argument.
//
// An operation is classified before anything else. Its [Class] is the floor of its [Facts] joined by maximum with
// the tightening rules that match, so the order of rules, policies and files never matters and nothing lowers a
// class (requirements C-1, C-3).
package policy
