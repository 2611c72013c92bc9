// Package identity resolves an authenticated caller to the session that it acts in.
package identity

import (
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Keys of userInfo.extra that the API server writes for bound ServiceAccount tokens.
const (
	extraCredentialID = "authentication.kubernetes.io/credential-id"
	extraPodName      = "authentication.kubernetes.io/pod-name"
	extraPodUID       = "authentication.kubernetes.io/pod-uid"

	serviceAccountPrefix = "system:serviceaccount:"
)

// Caller is an authenticated request's user.
type Caller struct {
	authenticationv1.UserInfo
}

// ServiceAccount splits the username of a ServiceAccount; ok is false for any other user.
func (c Caller) ServiceAccount() (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(c.Username, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != ""
}

// HasCredential tells whether the request carries the ID of a credential that the API server verified itself. An
// impersonated identity and a legacy Secret token do not.
func (c Caller) HasCredential() bool { return c.extra(extraCredentialID) != "" }

// Pod that the caller's token is bound to; empty for a token that is bound to none.
func (c Caller) Pod() (name, uid string) { return c.extra(extraPodName), c.extra(extraPodUID) }

// Relay is the username of the ServiceAccount that says it carries the request of the person whom it impersonates; empty for
// a caller with a credential, who speaks for nobody else. The API server lets only those say so who may impersonate the
// extra key; it does not prove who they are.
func (c Caller) Relay() string {
	if c.HasCredential() {
		return ""
	}
	return c.extra(v1alpha1.ExtraRelay)
}

func (c Caller) extra(key string) string {
	if values := c.Extra[key]; len(values) == 1 {
		return values[0]
	}
	return ""
}
