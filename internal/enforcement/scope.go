package enforcement

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

	// MaxScopeCodePoints bounds a scope's expression. The API server refuses expressions over 100,000 code points; the
	// rest is room for what is joined to the scope in one expression.
	MaxScopeCodePoints = 80_000

	credentialID = "authentication.kubernetes.io/credential-id"
)

var (
	// ErrNeverGoverned marks an entry that would make the cluster or the product depend on itself.
	ErrNeverGoverned = errors.New("can never be governed")
	// ErrNeverExempt marks an exemption that would take the proof of enforcement away, or open a door to every agent.
	ErrNeverExempt = errors.New("can never be exempt")
	// ErrMalformedEntry marks an entry that no Kubernetes identity or namespace can have.
	ErrMalformedEntry = errors.New("is malformed")
	// ErrScopeTooLarge marks a scope whose expression is over MaxScopeCodePoints.
	ErrScopeTooLarge = errors.New("scope does not fit one expression")
	// ErrForeignExpression marks an expression that this version of the compiler did not write.
	ErrForeignExpression = errors.New("not an expression of this compiler")
)

// ServiceAccount is the exact name of one ServiceAccount.
type ServiceAccount struct{ Namespace, Name string }

// Username is the name under which the API server authenticates the ServiceAccount.
func (s ServiceAccount) Username() string {
	return "system:serviceaccount:" + s.Namespace + ":" + s.Name
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

// The fixed parts of a scope's expression; a JSON list stands between each two. JSON strings are CEL strings.
var scopeParts = [...]string{
	`has(request.userInfo.username) && (request.userInfo.username in `,
	` || request.userInfo.username.startsWith("system:serviceaccount:") && request.userInfo.username.split(":")[2] in `,
	` && !(request.userInfo.username in `,
	` && has(request.userInfo.extra) && "` + credentialID + `" in request.userInfo.extra))`,
}

// Expression is a CEL expression over request that is true for governed identities only. It never errs, whoever asks
// and for whatever kind, and it looks at the username, because an impersonator can drop groups. Equal scopes give equal
// bytes, whatever the order of their entries. Errors name the entry: ErrNeverGoverned,
// ErrNeverExempt or ErrMalformedEntry; ErrScopeTooLarge names the sizes.
func (s Scope) Expression() (string, error) {
	if err := s.validate(); err != nil {
		return "", err
	}
	exempt := make([]string, 0, len(s.Exempt))
	for _, account := range s.Exempt {
		exempt = append(exempt, account.Username())
	}
	var b strings.Builder
	b.WriteString(scopeParts[0] + celLiteral(sortedUnique(s.Users)))
	b.WriteString(scopeParts[1] + celLiteral(sortedUnique(append(slices.Clone(s.Namespaces), CanaryNamespace))))
	b.WriteString(scopeParts[2] + celLiteral(sortedUnique(exempt)) + scopeParts[3])
	expression := b.String()
	if n := utf8.RuneCountInString(expression); n > MaxScopeCodePoints {
		return "", fmt.Errorf("%w: %d namespaces, %d users and %d exempt ServiceAccounts need %d code points, at most %d are possible",
			ErrScopeTooLarge, len(s.Namespaces), len(s.Users), len(s.Exempt), n, MaxScopeCodePoints)
	}
	return expression, nil
}

// ReadBack is the scope that an expression of a live configuration holds, sorted, without the canary's namespace. An
// expression that Expression would not write for that scope is ErrForeignExpression.
func ReadBack(expression string) (Scope, error) {
	rest := expression
	var lists [3][]string
	for i := range lists {
		var found bool
		if rest, found = strings.CutPrefix(rest, scopeParts[i]); !found {
			return Scope{}, fmt.Errorf("%w: part %d differs", ErrForeignExpression, i)
		}
		decoder := json.NewDecoder(strings.NewReader(rest))
		if err := decoder.Decode(&lists[i]); err != nil {
			return Scope{}, fmt.Errorf("%w: list %d: %w", ErrForeignExpression, i, err)
		}
		rest = rest[decoder.InputOffset():]
	}
	s := Scope{Users: orNil(lists[0]), Namespaces: orNil(slices.DeleteFunc(lists[1], func(ns string) bool { return ns == CanaryNamespace }))}
	for _, username := range lists[2] {
		account, ok := parseServiceAccount(username)
		if !ok {
			return Scope{}, fmt.Errorf("%w: exempt %q is not a ServiceAccount", ErrForeignExpression, username)
		}
		s.Exempt = append(s.Exempt, account)
	}
	switch again, err := s.Expression(); {
	case err != nil:
		return Scope{}, fmt.Errorf("%w: %w", ErrForeignExpression, err)
	case again != expression:
		return Scope{}, fmt.Errorf("%w: it differs from the expression of the scope that it lists", ErrForeignExpression)
	}
	return s, nil
}

func parseServiceAccount(username string) (ServiceAccount, bool) {
	rest, found := strings.CutPrefix(username, "system:serviceaccount:")
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

// orNil makes an empty list the omitted one, so that scopes can be compared.
func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
