// Package onboarding counts what would have been decided in namespaces under a profile that only audits, and adds the
// counts to the status of the ClusterAgentPolicy that governs them. Nothing is written per decision, and what is kept is
// bounded, whatever agents do.
package onboarding
