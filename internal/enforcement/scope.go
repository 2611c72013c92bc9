package enforcement

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// SystemNamespace holds the manager and the profiles; it is never governed, and governed identities write nothing in it.
	SystemNamespace = "stepbeyond-system"
	// CanaryNamespace holds the canary's ServiceAccount; it is always governed.
	CanaryNamespace = "stepbeyond-canary"

	credentialID         = "authentication.kubernetes.io/credential-id"
	serviceAccountPrefix = "system:serviceaccount:"
)

var (
	// ErrNeverGoverned marks an entry that would make the cluster or the product depend on itself.
	ErrNeverGoverned = errors.New("can never be governed")
	// ErrNeverExempt marks an exemption that would take the proof of enforcement away, or open a door to every agent.
	ErrNeverExempt = errors.New("can never be exempt")
	// ErrMalformedEntry marks an entry that no Kubernetes identity or namespace can have.
	ErrMalformedEntry = errors.New("is malformed")
	// ErrScopeTooLarge marks a scope of more than MaxEntries, or of more than MaxShards shards.
	ErrScopeTooLarge = errors.New("scope does not fit the match conditions")
	// ErrForeignExpression marks an expression that this version of the compiler did not write.
	ErrForeignExpression = errors.New("not an expression of this compiler")
)

// ServiceAccount is the exact name of one ServiceAccount.
type ServiceAccount struct{ Namespace, Name string }

// Username is the name under which the API server authenticates the ServiceAccount.
func (s ServiceAccount) Username() string {
	return serviceAccountPrefix + s.Namespace + ":" + s.Name
}

func (s ServiceAccount) compare(other ServiceAccount) int {
	return cmp.Or(cmp.Compare(s.Namespace, other.Namespace), cmp.Compare(s.Name, other.Name))
}

// Scope says which identities are governed: every ServiceAccount of the listed namespaces but the exempt ones, and the
// listed users. The canary's namespace is governed whether it is listed or not, so the zero value governs the canary only.
type Scope struct {
	// Namespaces by exact name. kube-* and SystemNamespace are refused.
	Namespaces []string
	// Users by exact username. Names that begin with "system:" are refused; ServiceAccounts are governed by namespace.
	Users []string
	// Exempt ServiceAccounts are not governed while the request carries a credential ID, which impersonation and legacy
	// Secret tokens do not. Those of namespaces that are not listed change nothing.
	Exempt []ServiceAccount
}

func parseServiceAccount(username string) (ServiceAccount, bool) {
	rest, found := strings.CutPrefix(username, serviceAccountPrefix)
	namespace, name, separated := strings.Cut(rest, ":")
	return ServiceAccount{Namespace: namespace, Name: name}, found && separated
}

func (s Scope) validate() error {
	for _, namespace := range s.Namespaces {
		if strings.HasPrefix(namespace, "kube-") || namespace == SystemNamespace {
			return fmt.Errorf("namespaces: %q %w", namespace, ErrNeverGoverned)
		}
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("namespaces: %q %w: %s", namespace, ErrMalformedEntry, problems[0])
		}
	}
	for _, user := range s.Users {
		if strings.HasPrefix(user, "system:") {
			return fmt.Errorf("users: %q %w: it is an identity of the cluster; ServiceAccounts are governed by namespace", user, ErrNeverGoverned)
		}
		if user == "" || !utf8.ValidString(user) || strings.ContainsFunc(user, unicode.IsControl) {
			return fmt.Errorf("users: %q %w: a username is not empty and has no control characters", user, ErrMalformedEntry)
		}
	}
	for _, account := range s.Exempt {
		if account.Namespace == CanaryNamespace {
			return fmt.Errorf("exempt: %s/%s %w: it proves enforcement", account.Namespace, account.Name, ErrNeverExempt)
		}
		if account.Name == "default" {
			return fmt.Errorf("exempt: %s/%s %w: agents may run pods under it, because it is governed", account.Namespace, account.Name, ErrNeverExempt)
		}
		problems := append(validation.IsDNS1123Label(account.Namespace), validation.IsDNS1123Subdomain(account.Name)...)
		if len(problems) > 0 {
			return fmt.Errorf("exempt: %q/%q %w: %s", account.Namespace, account.Name, ErrMalformedEntry, problems[0])
		}
	}
	return nil
}
