// Package cluster brings up a governed cluster for tests and measurements: a real control plane with the objects of
// config/, the manager as a process of its own with its own RBAC, a profile, and governed namespaces with an agent in
// each that has every right, so that each refusal is Step Beyond's.
package cluster
