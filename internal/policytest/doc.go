// Package policytest runs policy tests: folders with the policies of a team and cases that say what the engine must
// answer. It needs no cluster. Policies are read as a cluster reads them: refused and completed by the schemas of their
// CRDs, then through the types and the one converter of the manager; each case runs the manager's own engine.
//
// A folder holds a file cases.yaml of kind PolicyTest in group test.stepbeyond.dev, for which no cluster has a CRD, so
// that a stray "kubectl apply" of the folder fails instead of changing a cluster. [Test] and the types below it are the
// format. Unknown and duplicate fields are errors that name their path.
//
// The object of an operation has no schema here: it stands in a manifest as the webhook would see it, with the defaults
// that the case depends on.
package policytest
