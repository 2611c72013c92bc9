//go:build !faults

package grant

import "stepbeyond.dev/stepbeyond/api/v1alpha1"

// pass is where a build with the tag "faults" ends the process or waits; this one does nothing.
func pass(Step, *v1alpha1.PermissionGrant) {}
