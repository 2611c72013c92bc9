// Package agentsession makes sessions from templates, keeps their status, and deletes them when they are over.
package agentsession

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fieldOwner = client.FieldOwner("stepbeyond-agentsession")

// Proof tells what the API server is proven to enforce.
type Proof interface {
	// Proven returns when the canary requests were answered last and whether all were refused. The time is zero before
	// the first answer.
	Proven() (time.Time, bool)
	// EnforcesServiceAccount and EnforcesUser tell whether the scope in force covers the identity.
	EnforcesServiceAccount(namespace, name string) bool
	EnforcesUser(name string) bool
	// Changed receives after each change of the above other than the time.
	Changed() <-chan struct{}
}
