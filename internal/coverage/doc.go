// Package coverage makes the matrix of docs/coverage.md: every group, version, resource, subresource and verb that an API
// server's discovery lists, with the class that the engine gives and the part that enforces it (requirement K-7).
//
// The engine is asked as the enforcing webhook asks it, under the newest baseline alone, for a session that may do
// everything in its own namespace. A class depends on what is sent, so each kind has one example, the plainest object
// that the API server takes; package test/coverage sends the same examples to a real API server and compares.
package coverage
