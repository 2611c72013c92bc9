package v1alpha1

// ConditionType is the type of a condition in status.conditions.
type ConditionType string

// ConditionReason is the reason of a condition. The constants below are the whole vocabulary; each says under which
// condition, status and kind it stands.
type ConditionReason string

// Conditions of ClusterAgentPolicy, AgentPolicy and AgentSession.
const (
	// ConditionReady: the object is observed and in force. kstatus waits for it.
	//
	// True: Compiled (both policies), Active (AgentSession).
	// False: InvalidRule, InvalidSelector, InvalidDelegation, UnknownBaseline, DuplicateProfile, ProfileMissing,
	// ScopeTooLarge, InvalidScope, NotDelegated, WrongName (policies); Suspended, ParentSuspended, Ended, DeadlinePassed,
	// OwnerGone, ParentEnded, NoPolicy, TemplateWriterFound, AuthorityExceeded, DuplicateSession (AgentSession).
	ConditionReady ConditionType = "Ready"

	// ConditionStalled: only a change of the spec can help; present and True, or absent (kstatus).
	//
	// True: every reason of Ready False that names a defect of the spec.
	ConditionStalled ConditionType = "Stalled"
)

// Conditions of ClusterAgentPolicy alone.
const (
	// ConditionEnforcementReady: webhook and floor are proven in force by a canary request.
	//
	// True: CanaryDenied. False: CanaryAdmitted, CanaryFailed, WebhookMissing, FloorMissing, CertificateNotServed,
	// ScopeTooLarge, InvalidScope. Unknown: NotProvenYet.
	ConditionEnforcementReady ConditionType = "EnforcementReady"

	// ConditionIdentitiesConfined: RBAC lets no governed identity step around admission or read Secrets (requirement
	// K-10).
	//
	// True: RolesConfined. False: RoleEscapes.
	ConditionIdentitiesConfined ConditionType = "IdentitiesConfined"
)

// Condition of AgentSession alone.
const (
	// ConditionGuaranteeMet: the session has at least the guarantee runtime-backed.
	//
	// True: EnforcementProven. False: EnforcementLost, FloorAudited, NoPolicy, RoleEscapes. Unknown: NotProvenYet.
	ConditionGuaranteeMet ConditionType = "GuaranteeMet"
)

// Conditions of PermissionGrant.
const (
	// ConditionDecided: the question has an end, whichever; so kubectl wait also returns on a denial.
	//
	// True: RequirementsMet, ApproverDenied, NotDecidedInTime, ApprovalRevoked, EpochRaised, SessionOver,
	// NewerQuestion, CoveredByWiderAnswer, ClassDropped. False: AwaitingApproval.
	ConditionDecided ConditionType = "Decided"

	// ConditionApproved: the question was approved. It stays True after the uses; state says what became of them.
	//
	// True: RequirementsMet. False: AwaitingApproval, ApproverDenied, NotDecidedInTime, NotUsedInTime,
	// ApprovalRevoked, EpochRaised, SessionOver, NewerQuestion, CoveredByWiderAnswer, ClassDropped, PolicyChanged.
	ConditionApproved ConditionType = "Approved"

	// ConditionSettled: the outcome of every use that began is known, or known to be unknowable. Absent before a use
	// begins.
	//
	// True: EffectSeen, EffectAbsent, EffectUnknown. False: UseReserved.
	ConditionSettled ConditionType = "Settled"

	// ConditionExpiring: status.expirationTime is near; present and True, or absent. How near, says
	// approvals.warnBeforeExpirySeconds.
	//
	// True: DecisionDue, UseDue.
	ConditionExpiring ConditionType = "Expiring"
)

// Reasons of policies.
const (
	// ReasonCompiled: Ready True; every rule and entry is compiled and counts.
	ReasonCompiled ConditionReason = "Compiled"
	// ReasonInvalidRule: Ready False, Stalled True; a rule or catalogue entry does not compile, the message names it
	// with line and column. The last valid generation stays in force.
	ReasonInvalidRule ConditionReason = "InvalidRule"
	// ReasonInvalidSelector: Ready False, Stalled True; the namespace selector cannot be parsed.
	ReasonInvalidSelector ConditionReason = "InvalidSelector"
	// ReasonInvalidDelegation: Ready False, Stalled True; a delegated prefix overlaps the platform's own entries.
	ReasonInvalidDelegation ConditionReason = "InvalidDelegation"
	// ReasonUnknownBaseline: Ready False, Stalled True; this binary does not embed spec.baselineVersion.
	ReasonUnknownBaseline ConditionReason = "UnknownBaseline"
	// ReasonDuplicateProfile: Ready False, Stalled True; two ClusterAgentPolicies bind one profile name.
	ReasonDuplicateProfile ConditionReason = "DuplicateProfile"
	// ReasonProfileMissing: Ready False; a binding names an AgentPolicy that does not exist, or a namespace's label
	// names a profile that no binding has.
	ReasonProfileMissing ConditionReason = "ProfileMissing"
	// ReasonScopeTooLarge: Ready and EnforcementReady False; the scope does not fit the match conditions and the last
	// one is kept.
	ReasonScopeTooLarge ConditionReason = "ScopeTooLarge"
	// ReasonInvalidScope: Ready and EnforcementReady False; an entry of the scope can never be governed or exempt, or is
	// no name that an identity can have. The message names it and the last scope is kept.
	ReasonInvalidScope ConditionReason = "InvalidScope"
	// ReasonNotDelegated: Ready False, Stalled True; a namespace's policy sets what is not delegated.
	ReasonNotDelegated ConditionReason = "NotDelegated"
	// ReasonWrongName: Ready False, Stalled True; an AgentPolicy outside the system namespace is not named default.
	ReasonWrongName ConditionReason = "WrongName"
)

// Reasons of EnforcementReady and GuaranteeMet.
const (
	// ReasonCanaryDenied: EnforcementReady True; webhook and floor refused the canary requests.
	ReasonCanaryDenied ConditionReason = "CanaryDenied"
	// ReasonCanaryAdmitted: EnforcementReady False; a canary request that must be refused was not.
	ReasonCanaryAdmitted ConditionReason = "CanaryAdmitted"
	// ReasonCanaryFailed: EnforcementReady False; the canary request got another error than the expected refusal.
	ReasonCanaryFailed ConditionReason = "CanaryFailed"
	// ReasonWebhookMissing: EnforcementReady False; the webhook configuration is gone or differs, or was put right and is
	// not proven again yet.
	ReasonWebhookMissing ConditionReason = "WebhookMissing"
	// ReasonFloorMissing: EnforcementReady False; a policy or binding of the floor is gone or differs, or was put right and
	// is not proven again yet.
	ReasonFloorMissing ConditionReason = "FloorMissing"
	// ReasonCertificateNotServed: EnforcementReady False; the webhook does not serve the certificate it should.
	ReasonCertificateNotServed ConditionReason = "CertificateNotServed"
	// ReasonNotProvenYet: EnforcementReady or GuaranteeMet Unknown; no canary request was answered since the start.
	ReasonNotProvenYet ConditionReason = "NotProvenYet"
	// ReasonEnforcementProven: GuaranteeMet True; EnforcementReady is True and the session's profile enforces.
	ReasonEnforcementProven ConditionReason = "EnforcementProven"
	// ReasonEnforcementLost: GuaranteeMet False; EnforcementReady is not True.
	ReasonEnforcementLost ConditionReason = "EnforcementLost"
	// ReasonFloorAudited: GuaranteeMet False; the session's profile only audits.
	ReasonFloorAudited ConditionReason = "FloorAudited"
)

// Reasons of IdentitiesConfined.
const (
	// ReasonRolesConfined: IdentitiesConfined True; no role of a governed identity escapes.
	ReasonRolesConfined ConditionReason = "RolesConfined"
	// ReasonRoleEscapes: IdentitiesConfined and GuaranteeMet False; the message names the role, the identity, and what
	// the role allows.
	ReasonRoleEscapes ConditionReason = "RoleEscapes"
)

// Reasons of AgentSession's Ready.
const (
	// ReasonActive: Ready True; the session is served.
	ReasonActive ConditionReason = "Active"
	// ReasonSuspended: Ready False; writes are held until a person resumes.
	ReasonSuspended ConditionReason = "Suspended"
	// ReasonParentSuspended: Ready False; an ancestor is suspended, so writes are held until a person resumes it.
	ReasonParentSuspended ConditionReason = "ParentSuspended"
	// ReasonEnded: Ready False; a person ended the session.
	ReasonEnded ConditionReason = "Ended"
	// ReasonDeadlinePassed: Ready False; spec.deadlineTime has passed.
	ReasonDeadlinePassed ConditionReason = "DeadlinePassed"
	// ReasonOwnerGone: Ready False; the root owner or the pod of the session no longer exists.
	ReasonOwnerGone ConditionReason = "OwnerGone"
	// ReasonParentEnded: Ready False; an ancestor has ended or is gone.
	ReasonParentEnded ConditionReason = "ParentEnded"
	// ReasonNoPolicy: Ready and GuaranteeMet False; no valid policy covers the session's namespace.
	ReasonNoPolicy ConditionReason = "NoPolicy"
	// ReasonTemplateWriterFound: Ready False; a governed identity wrote the pod template, so the pod gets no session
	// of its own.
	ReasonTemplateWriterFound ConditionReason = "TemplateWriterFound"
	// ReasonAuthorityExceeded: Ready False, Stalled True; spec.authority does not fit the profile.
	ReasonAuthorityExceeded ConditionReason = "AuthorityExceeded"
	// ReasonDuplicateSession: Ready False, Stalled True; another live session covers the same identity.
	ReasonDuplicateSession ConditionReason = "DuplicateSession"
)

// Reasons of PermissionGrant, of its conditions and of status.reason. Each closed state has its own (requirement G-6).
const (
	// ReasonAwaitingApproval: Decided and Approved False; state Pending.
	ReasonAwaitingApproval ConditionReason = "AwaitingApproval"
	// ReasonRequirementsMet: Decided and Approved True; state Approved or Exhausted.
	ReasonRequirementsMet ConditionReason = "RequirementsMet"
	// ReasonApproverDenied: Decided True, Approved False; state Denied.
	ReasonApproverDenied ConditionReason = "ApproverDenied"
	// ReasonNotDecidedInTime: Decided True, Approved False; state Expired before approval.
	ReasonNotDecidedInTime ConditionReason = "NotDecidedInTime"
	// ReasonNotUsedInTime: Approved False; state Expired after approval.
	ReasonNotUsedInTime ConditionReason = "NotUsedInTime"
	// ReasonApprovalRevoked: Decided True, Approved False; state Revoked.
	ReasonApprovalRevoked ConditionReason = "ApprovalRevoked"
	// ReasonEpochRaised: Approved False; state Superseded, the session has a higher epoch.
	ReasonEpochRaised ConditionReason = "EpochRaised"
	// ReasonSessionOver: Approved False; state Superseded, the session ended or is gone.
	ReasonSessionOver ConditionReason = "SessionOver"
	// ReasonNewerQuestion: Approved False; state Superseded, the session asked anew about the same verb and object.
	ReasonNewerQuestion ConditionReason = "NewerQuestion"
	// ReasonCoveredByWiderAnswer: Decided True, Approved False; state Superseded, another approval of the session covers
	// the operation, status.coveredBy names its grant.
	ReasonCoveredByWiderAnswer ConditionReason = "CoveredByWiderAnswer"
	// ReasonClassDropped: Approved False; state Superseded, the operation needs no approval any more.
	ReasonClassDropped ConditionReason = "ClassDropped"
	// ReasonPolicyChanged: Approved False; state Stale, a policy behind the approval changed.
	ReasonPolicyChanged ConditionReason = "PolicyChanged"
	// ReasonDecisionDue: Expiring True; state Pending, the question expires soon, which never approves.
	ReasonDecisionDue ConditionReason = "DecisionDue"
	// ReasonUseDue: Expiring True; state Approved, the approval ends soon and has uses left.
	ReasonUseDue ConditionReason = "UseDue"
	// ReasonUseReserved: Settled False; an attempt was let through and its effect is not known yet.
	ReasonUseReserved ConditionReason = "UseReserved"
	// ReasonEffectSeen: Settled True; state Exhausted, the effect was seen.
	ReasonEffectSeen ConditionReason = "EffectSeen"
	// ReasonEffectAbsent: Settled True; it is proven that the attempt had no effect.
	ReasonEffectAbsent ConditionReason = "EffectAbsent"
	// ReasonEffectUnknown: Settled True; state Exhausted, whether there was an effect cannot be told.
	ReasonEffectUnknown ConditionReason = "EffectUnknown"
)
