// Package rotation replaces the webhook's certificate authority and its secret path without a request that fails.
//
// The Secret stepbeyond-installation holds the phase of a rotation. Every replica has a Keeper, which reads the Secret every
// few seconds and serves what it says: all secret paths in it, with a leaf of its current authority. A Herald says in a Lease
// of the replica's own what it serves. The Rotator, on the leader, moves the Secret on when the API servers and every live
// replica are ready for the next phase:
//
//	Steady        one authority and path
//	Distributing  both webhook configurations trust the next authority too, and every replica serves the next path too
//	Overlapping   the configurations call the new path and the leaves are of the new authority; the old ones are still good
//	Steady
//
// A poll, and no watch: the age of what a replica knows is then bounded. Nothing but the Secret remembers a phase, and each
// step is one write of it, so whoever leads goes on where another stopped. How long a condition has held is measured by
// the leader that watches it, so that no two clocks are compared; a new leader waits anew.
//
// A replica counts as long as its Lease changes. It is ready only after it has said what it serves and has then read the
// Secret once more: either the leader saw the Lease before it moved on, or the replica saw what the leader had written.
package rotation
