// Package webhook is the admission front door: it translates reviews into operations, and decisions into answers. It
// decides nothing itself.
package webhook
