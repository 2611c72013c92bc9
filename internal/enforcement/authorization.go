package enforcement

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// PathAuthorize is the path of the authorization webhook below Endpoint.PathPrefix.
const PathAuthorize = "/authorize"

// Authorizer names the webhook among the API server's authorizers, in its metrics as well.
const Authorizer = "stepbeyond"

// authorizerTimeout is like webhookTimeoutSeconds.
const authorizerTimeout = webhookTimeoutSeconds * time.Second

// authorizationConfiguration is the file of kube-apiserver's flag --authorization-config. The webhook stands before RBAC
// and only ever refuses; what it has no opinion about RBAC decides as if it were not there. Its failures refuse, and its
// match conditions keep everybody who is not governed, and what admission sees, from ever depending on it.
func authorizationConfiguration(s Scope, reads Reads, kubeconfig string) ([]byte, error) {
	parts, err := s.shards()
	if err != nil {
		return nil, fmt.Errorf("scope of the authorization webhook: %w", err)
	}
	var conditions []apiserverv1.WebhookMatchCondition
	for _, part := range parts {
		conditions = append(conditions, apiserverv1.WebhookMatchCondition{Expression: part.subjectExpression()})
	}
	never := false
	webhook := &apiserverv1.WebhookConfiguration{
		// Nothing is cached: a policy that tightens counts at once. The API server wants the times nevertheless.
		CacheAuthorizedRequests: &never, AuthorizedTTL: metav1.Duration{Duration: time.Second},
		CacheUnauthorizedRequests: &never, UnauthorizedTTL: metav1.Duration{Duration: time.Second},
		Timeout:                                  metav1.Duration{Duration: authorizerTimeout},
		SubjectAccessReviewVersion:               "v1",
		MatchConditionSubjectAccessReviewVersion: "v1",
		FailurePolicy:                            "Deny",
		ConnectionInfo: apiserverv1.WebhookConnectionInfo{
			Type: apiserverv1.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: &kubeconfig,
		},
		MatchConditions: append(conditions, apiserverv1.WebhookMatchCondition{Expression: unseenExpression(reads)}),
	}
	text, err := yaml.Marshal(&apiserverv1.AuthorizationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthorizationConfiguration"},
		Authorizers: []apiserverv1.AuthorizerConfiguration{
			{Type: "Node", Name: "node"}, {Type: string(apiserverv1.TypeWebhook), Name: Authorizer, Webhook: webhook}, {Type: "RBAC", Name: "rbac"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("authorization configuration: %w", err)
	}
	return text, nil
}

// subjectExpression is expression in the words of a SubjectAccessReview, whose fields the API server always fills in.
func (p shard) subjectExpression() string {
	var b strings.Builder
	if p.from != "" {
		b.WriteString("request.user < " + celLiteral(p.from) + or)
	}
	if p.before != "" {
		b.WriteString("request.user >= " + celLiteral(p.before) + or)
	}
	b.WriteString("request.user in " + celLiteral(p.users) +
		or + `request.user.startsWith("` + serviceAccountPrefix + `") && request.user.split(":")[2] in ` + celLiteral(p.namespaces) +
		" && !(request.user in " + celLiteral(p.exempt) + ` && "` + credentialID + `" in request.extra)`)
	return b.String()
}

// Paths of requests for no resource that every client needs and that tell nothing about anybody.
var (
	openPaths    = []string{"/", "/.well-known/openid-configuration", "/api", "/apis", "/healthz", "/livez", "/openid/v1/jwks", "/readyz", "/version"}
	openPrefixes = []string{"/api/", "/apis/", "/healthz/", "/livez/", "/openapi/", "/readyz/", "/version/"}
)

// unseenExpression is true for what no admission sees and for the reads that rules name. It has at most maxUnseenBytes:
// boundedSelections says what is asked about instead where rules name too much for that.
func unseenExpression(reads Reads) string {
	open := []string{"p.path in " + celLiteral(openPaths)}
	for _, prefix := range openPrefixes {
		open = append(open, "p.path.startsWith("+celLiteral(prefix)+")")
	}
	// Admission sees a connect whatever its verb, and the status of a Node is as harmless as the Node.
	seen := `(r.resource == "nodes" ? r.subresource == "status" : r.subresource in ` + celLiteral(kube.Connected) + `)`
	head := `has(request.resourceAttributes) ? [request.resourceAttributes].exists(r, ` +
		`r.verb.startsWith(` + celLiteral(kube.ImpersonationPrefix) + `) || !` + seen + ` && (`
	tail := `)) : !has(request.nonResourceAttributes) || [request.nonResourceAttributes].exists(p, ` +
		`!(p.verb in ["get", "head"] && (` + strings.Join(open, " || ") + `)))`
	return head + boundedSelections(kube.Unseen, reads, maxUnseenBytes-len(head)-len(tail)) + tail
}

// selections are one expression for each combination of API verbs and group, in a fixed order.
func selections(selectors []policy.KubernetesSelector) []string {
	type key struct{ verbs, group string }
	resources := map[key][]string{}
	for _, s := range selectors {
		for _, group := range s.Groups {
			k := key{verbs: apiVerbs(s.Verbs, group), group: group}
			resources[k] = append(resources[k], s.Resources...)
		}
	}
	keys := make([]key, 0, len(resources))
	for k := range resources {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.verbs, b.verbs)) })
	expressions := make([]string, 0, len(keys))
	for _, k := range keys {
		conjuncts := []string{resourcesExpression(sortedUnique(resources[k]))}
		if k.verbs != "" {
			conjuncts = append([]string{"r.verb in " + k.verbs}, conjuncts...)
		}
		if k.group != "*" {
			conjuncts = append([]string{"r.group == " + celLiteral(k.group)}, conjuncts...)
		}
		expressions = append(expressions, strings.Join(conjuncts, " && "))
	}
	return expressions
}

// apiVerbs are a selector's verbs in the words of the API, as a CEL list; empty for any verb.
func apiVerbs(verbs []policy.Verb, group string) string {
	words := map[policy.Verb][]string{
		policy.VerbRead:   {"get", "list", "watch"},
		policy.VerbCreate: {"create"},
		policy.VerbUpdate: {"update", "patch"},
		policy.VerbDelete: {"delete", "deletecollection"},
	}
	if group == "authentication.k8s.io" || group == "authorization.k8s.io" {
		words[policy.VerbRead] = []string{"create"} // what is read there is the answer to what is created
	}
	if len(verbs) == 0 {
		return ""
	}
	var all []string
	for _, verb := range verbs {
		all = append(all, words[verb]...)
	}
	return celLiteral(sortedUnique(all))
}

func resourcesExpression(resources []string) string {
	var exact, matches []string
	for _, resource := range resources {
		switch parent, all := strings.CutSuffix(resource, "/*"); {
		case resource == "*":
			matches = append(matches, "true")
		case all:
			matches = append(matches, "r.resource == "+celLiteral(parent)+` && r.subresource != ""`)
		default:
			exact = append(exact, resource)
		}
	}
	if len(exact) > 0 {
		matches = append(matches, `(r.subresource == "" ? r.resource : r.resource + "/" + r.subresource) in `+celLiteral(exact))
	}
	return `(` + strings.Join(matches, " || ") + `)`
}

var errDirectory = errors.New("directory is not an absolute path")

func validateDirectory(directory string) error {
	if !path.IsAbs(directory) || path.Clean(directory) != directory {
		return fmt.Errorf("%w without dots and doubled slashes: %q", errDirectory, directory)
	}
	return nil
}
