package enforcement

import "stepbeyond.dev/stepbeyond/policy"

// credentialBound refuses governed identities without a credential ID: impersonation and tokens from Secrets do not carry
// one, and without it nobody knows which pod asks.
func credentialBound() check {
	return check{
		allowed: `has(request.userInfo.extra) && ` + celLiteral(credentialID) + ` in request.userInfo.extra`,
		refusal: refusal{
			word:   "Denied",
			why:    "is refused: the request carries no credential-id, as impersonated identities and legacy tokens do not",
			reason: string(policy.ReasonCredentialUnbound),
			rule:   "credential-bound",
			next:   "use the token that is mounted in the agent's own pod",
		},
	}
}
