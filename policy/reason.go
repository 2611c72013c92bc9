package policy

// Reason is the vocabulary of answers. Every answer other than a plain allow has exactly one, and every reason that
// can prevent an operation names the one boundary that lets it (requirement B-1).
type Reason string

const (
	// ReasonAllowed: nothing stands in the way.
	ReasonAllowed Reason = "Allowed"
	// ReasonDisclosed: allowed, resting on an assumption that was disclosed.
	ReasonDisclosed Reason = "Disclosed"
	// ReasonDryRun: allowed because a dry run changes nothing, though the real request needs a grant.
	ReasonDryRun Reason = "DryRun"
	// ReasonGranted: allowed under a grant.
	ReasonGranted Reason = "Granted"

	// ReasonNoSession: no session covers the caller.
	ReasonNoSession Reason = "NoSession"
	// ReasonSessionPending: the session's object is still being made; what needs no grant works already.
	ReasonSessionPending Reason = "SessionPending"
	// ReasonSessionAmbiguous: more than one session could be meant.
	ReasonSessionAmbiguous Reason = "SessionAmbiguous"
	// ReasonSessionEnded: the session is over.
	ReasonSessionEnded Reason = "SessionEnded"
	// ReasonCredentialUnbound: the credential is not one that the API server issued to a bound identity.
	ReasonCredentialUnbound Reason = "CredentialUnbound"
	// ReasonMalformed: the request cannot be read as what it claims to be.
	ReasonMalformed Reason = "Malformed"
	// ReasonOutsideAuthority: the session's authority does not cover the operation.
	ReasonOutsideAuthority Reason = "OutsideAuthority"
	// ReasonForbidden: a fact or a rule closes the operation to agents.
	ReasonForbidden Reason = "Forbidden"
	// ReasonStrictScope: the user limited the work, and the operation is optional.
	ReasonStrictScope Reason = "StrictScope"
	// ReasonSuspended: the session is suspended.
	ReasonSuspended Reason = "Suspended"
	// ReasonSteeringHold: a person changed the plan, and the operation belongs to the old one.
	ReasonSteeringHold Reason = "SteeringHold"
	// ReasonSteeringConstraint: a person took this operation away by steering.
	ReasonSteeringConstraint Reason = "SteeringConstraint"

	// ReasonPermissionPending: a human has to answer first.
	ReasonPermissionPending Reason = "PermissionPending"
	// ReasonGrantDigestMismatch: a grant exists for another change of the same object.
	ReasonGrantDigestMismatch Reason = "GrantDigestMismatch"
	// ReasonGrantUsed: the grant has had its effect.
	ReasonGrantUsed Reason = "GrantUsed"
	// ReasonGrantInUse: an earlier try under the grant may still take effect.
	ReasonGrantInUse Reason = "GrantInUse"
	// ReasonGrantDenied: a human said no.
	ReasonGrantDenied Reason = "GrantDenied"
	// ReasonGrantExpired: the question or the approval ran out of time.
	ReasonGrantExpired Reason = "GrantExpired"
	// ReasonGrantRevoked: a human took the approval back.
	ReasonGrantRevoked Reason = "GrantRevoked"
	// ReasonGrantSuperseded: the grant belongs to an older epoch.
	ReasonGrantSuperseded Reason = "GrantSuperseded"
	// ReasonGrantStale: the policies changed after the approval.
	ReasonGrantStale Reason = "GrantStale"
	// ReasonGrantWrongSession: the grant belongs to another session or requester.
	ReasonGrantWrongSession Reason = "GrantWrongSession"
	// ReasonGrantWrongStage: the grant is for another stage.
	ReasonGrantWrongStage Reason = "GrantWrongStage"
	// ReasonUnnamed: the operation names no object, so no grant can be bound to it.
	ReasonUnnamed Reason = "Unnamed"
	// ReasonUngrantable: a human would have to agree, and grants cover writes only.
	ReasonUngrantable Reason = "Ungrantable"
	// ReasonTooManyPending: the session, or its namespace, has as many open questions as it may.
	ReasonTooManyPending Reason = "TooManyPending"
	// ReasonStaleRead: the object changed between the request and its review.
	ReasonStaleRead Reason = "StaleRead"

	// ReasonPolicyNotLoaded: no policy is loaded yet.
	ReasonPolicyNotLoaded Reason = "PolicyNotLoaded"
	// ReasonPolicyMissing: no valid policy governs the namespace.
	ReasonPolicyMissing Reason = "PolicyMissing"
	// ReasonUnstamped: the created object does not carry the origin stamp that the server writes.
	ReasonUnstamped Reason = "Unstamped"
	// ReasonUndecided: deciding failed or took too long.
	ReasonUndecided Reason = "Undecided"
)

// Boundary is one of the few things that may prevent a call (requirement B-1).
type Boundary string

const (
	// BoundaryNone belongs to reasons that prevent nothing.
	BoundaryNone Boundary = ""
	// BoundaryAuthority is platform safety and user authority.
	BoundaryAuthority Boundary = "PlatformSafetyAndUserAuthority"
	// BoundarySchema is schema and transport integrity.
	BoundarySchema Boundary = "SchemaAndTransportIntegrity"
	// BoundaryCompareAndSwap is the compare-and-swap of the tool itself.
	BoundaryCompareAndSwap Boundary = "CompareAndSwap"
	// BoundaryDelegation is an ownership boundary that a parent explicitly supplied.
	BoundaryDelegation Boundary = "DelegatedOwnership"
	// BoundaryResources is a resource limit against real exhaustion.
	BoundaryResources Boundary = "ResourceLimit"
	// BoundarySteering is typed steering after the current atomic action.
	BoundarySteering Boundary = "Steering"
)

// Boundary names what lets the reason prevent an operation; BoundaryNone when it prevents nothing. Every decision asks,
// so it is a comparison and not a look-up.
func (r Reason) Boundary() Boundary {
	switch r {
	case ReasonAllowed, ReasonDisclosed, ReasonDryRun, ReasonGranted:
		return BoundaryNone
	case ReasonNoSession, ReasonSessionPending, ReasonSessionAmbiguous, ReasonSessionEnded, ReasonForbidden,
		ReasonStrictScope, ReasonPermissionPending, ReasonGrantDigestMismatch, ReasonGrantUsed, ReasonGrantDenied,
		ReasonGrantExpired, ReasonGrantRevoked, ReasonGrantStale, ReasonGrantWrongSession, ReasonGrantWrongStage,
		ReasonUnnamed, ReasonUngrantable, ReasonPolicyNotLoaded, ReasonPolicyMissing, ReasonUndecided:
		return BoundaryAuthority
	case ReasonCredentialUnbound, ReasonMalformed, ReasonUnstamped:
		return BoundarySchema
	case ReasonOutsideAuthority:
		return BoundaryDelegation
	case ReasonSuspended, ReasonSteeringHold, ReasonSteeringConstraint, ReasonGrantSuperseded:
		return BoundarySteering
	case ReasonGrantInUse, ReasonStaleRead:
		return BoundaryCompareAndSwap
	case ReasonTooManyPending:
		return BoundaryResources
	default:
		return ""
	}
}

// Status is the word that a Kubernetes client prints in "Error from server (WORD)". Reasons that mean the same to the
// reader share one.
func (r Reason) Status() string {
	switch r {
	case ReasonSessionPending, ReasonSessionAmbiguous, ReasonSessionEnded:
		return string(ReasonNoSession)
	case ReasonOutsideAuthority:
		return string(ReasonForbidden)
	case ReasonSuspended:
		return string(ReasonSteeringHold)
	default:
		return string(r)
	}
}
