package enforcement

import (
	"errors"
	"fmt"
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const (
	// WebhookConfiguration names both the validating and the mutating webhook configuration.
	WebhookConfiguration = "stepbeyond"

	// EntryEnforce decides every write of governed identities.
	EntryEnforce = "enforce.stepbeyond.dev"
	// EntryOrigin writes the origin stamps.
	EntryOrigin = "origin.stepbeyond.dev"
	// EntryObjects validates and stamps our own kinds, whoever writes them. It is the name of one entry in each configuration.
	EntryObjects = "objects.stepbeyond.dev"

	// Paths of the entries below Endpoint.PathPrefix.
	PathEnforce      = "/enforce"
	PathOrigin       = "/origin"
	PathObjects      = "/objects"
	PathObjectsStamp = "/objects-stamp"

	// webhookTimeoutSeconds leaves the webhook, which answers within 2 s, time to say why it cannot.
	webhookTimeoutSeconds = 3
)

// Endpoint says where the API server finds the webhook server.
type Endpoint struct {
	// URL is https://host:port without a path. Omitted, the Service is called.
	URL string
	// ServiceNamespace and ServiceName name the Service whose port 443 is called; only without URL.
	ServiceNamespace, ServiceName string
	// PathPrefix is the secret path, "/" and 64 hexadecimal digits: who cannot read it cannot call the webhook.
	// Omitted, the entries' paths start at the root.
	PathPrefix string
	// CABundle is the PEM certificate of the authority that signs the serving certificate.
	CABundle []byte
}

var errEndpoint = errors.New("endpoint")

func (e Endpoint) validate() error {
	u, err := url.Parse(e.URL)
	switch {
	case len(e.CABundle) == 0:
		return fmt.Errorf("%w: CABundle is empty", errEndpoint)
	case e.URL == "" && (e.ServiceNamespace == "" || e.ServiceName == ""):
		return fmt.Errorf("%w: neither URL nor Service is set", errEndpoint)
	case e.URL == "":
		return nil
	case err != nil:
		return fmt.Errorf("%w: URL: %w", errEndpoint, err)
	case u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("%w: URL %q is not https://host:port", errEndpoint, e.URL)
	default:
		return nil
	}
}

func (e Endpoint) client(path string) *admissionregistration.WebhookClientConfigApplyConfiguration {
	config := admissionregistration.WebhookClientConfig().WithCABundle(e.CABundle...)
	if e.URL != "" {
		return config.WithURL(e.URL + e.PathPrefix + path)
	}
	return config.WithService(admissionregistration.ServiceReference().
		WithNamespace(e.ServiceNamespace).WithName(e.ServiceName).WithPath(e.PathPrefix + path).WithPort(443))
}

// Webhooks is the mutating and the validating webhook configuration. manager is the manager's own username, whose
// writes of our own kinds are not sent back to it. Equal input gives equal bytes.
func Webhooks(s Scope, e Endpoint, manager string) ([]Object, error) {
	governed, err := s.shards()
	if err != nil {
		return nil, fmt.Errorf("scope of the webhooks: %w", err)
	}
	if err := e.validate(); err != nil {
		return nil, err
	}
	if manager == "" {
		return nil, errors.New("username of the manager is empty")
	}
	return []Object{
		admissionregistration.MutatingWebhookConfiguration(WebhookConfiguration).WithLabels(labels()).
			WithWebhooks(origin(e, governed), stampObjects(e, manager)),
		admissionregistration.ValidatingWebhookConfiguration(WebhookConfiguration).WithLabels(labels()).
			WithWebhooks(enforce(e, governed), validateObjects(e, manager)),
	}, nil
}

// enforce matches every request exactly as it was made (matchPolicy Exact with rules that leave nothing out): group,
// version and resource are then the caller's own, never those of an equivalent that another rule names.
func enforce(e Endpoint, governed shards) *admissionregistration.ValidatingWebhookApplyConfiguration {
	return admissionregistration.ValidatingWebhook().WithName(EntryEnforce).WithClientConfig(e.client(PathEnforce)).
		WithRules(anything.webhookRule()).
		WithMatchPolicy(admissionregistrationv1.Exact).
		WithNamespaceSelector(everything()).WithObjectSelector(everything()).
		WithMatchConditions(governed.conditions(Governed, "")...).
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithSideEffects(admissionregistrationv1.SideEffectClassNoneOnDryRun).
		WithTimeoutSeconds(webhookTimeoutSeconds).
		WithAdmissionReviewVersions("v1")
}

// origin is ignored when it fails, so that a dead manager leaves the floor's answers; the enforcing entry refuses what
// it did not stamp. Scope and need are one condition, because the API server evaluates every condition of an entry and
// callers who are not governed must not pay for comparing objects.
func origin(e Endpoint, governed shards) *admissionregistration.MutatingWebhookApplyConfiguration {
	writes := rule{groups: []string{"*"}, versions: []string{"*"}, resources: []string{"*"},
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}}
	return admissionregistration.MutatingWebhook().WithName(EntryOrigin).WithClientConfig(e.client(PathOrigin)).
		WithRules(writes.webhookRule()).
		WithMatchPolicy(admissionregistrationv1.Exact).
		WithNamespaceSelector(everything()).WithObjectSelector(everything()).
		WithMatchConditions(governed.conditions("governed-and-unstamped", unstamped())...).
		WithFailurePolicy(admissionregistrationv1.Ignore).
		WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(webhookTimeoutSeconds).
		WithAdmissionReviewVersions("v1")
}

// unstamped is true where a stamp has to be written: on create, and on update where one would be lost or changed or a
// pod template changes.
func unstamped() string {
	return `request.operation == "CREATE" || request.operation == "UPDATE" && (` +
		annotation("object", v1alpha1.AnnotationCreatedBy) + " != " + annotation("oldObject", v1alpha1.AnnotationCreatedBy) + " || " +
		annotation("object", v1alpha1.AnnotationTemplateWriter) + " != " + annotation("oldObject", v1alpha1.AnnotationTemplateWriter) + " || " +
		// Asked first, because most kinds hold no template and the kinds are compared one by one.
		"request.resource.resource in " + celLiteral(podTemplateResources()) + " && " + podTemplate("object", "") + " != " + podTemplate("oldObject", "") + ")"
}

// validateObjects sees main resources only: status belongs to the manager, and a person in an emergency can always delete.
func validateObjects(e Endpoint, manager string) *admissionregistration.ValidatingWebhookApplyConfiguration {
	return admissionregistration.ValidatingWebhook().WithName(EntryObjects).WithClientConfig(e.client(PathObjects)).
		WithRules(ownRule([]string{"*"}, admissionregistrationv1.Create, admissionregistrationv1.Update)).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(everything()).WithObjectSelector(everything()).
		WithMatchConditions(ownConditions(manager)...).
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(webhookTimeoutSeconds).
		WithAdmissionReviewVersions("v1")
}

// stampObjects writes who decided a grant and who opened a session.
func stampObjects(e Endpoint, manager string) *admissionregistration.MutatingWebhookApplyConfiguration {
	return admissionregistration.MutatingWebhook().WithName(EntryObjects).WithClientConfig(e.client(PathObjectsStamp)).
		WithRules(
			ownRule([]string{"permissiongrants"}, admissionregistrationv1.Update),
			ownRule([]string{"agentsessions"}, admissionregistrationv1.Create, admissionregistrationv1.Update)).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(everything()).WithObjectSelector(everything()).
		WithMatchConditions(ownConditions(manager)...).
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(webhookTimeoutSeconds).
		WithAdmissionReviewVersions("v1")
}

// ownRule selects our own kinds in the version that the webhook decodes; the API server converts others to it.
func ownRule(resources []string, operations ...admissionregistrationv1.OperationType) *admissionregistration.RuleWithOperationsApplyConfiguration {
	return rule{groups: []string{v1alpha1.GroupVersion.Group}, versions: []string{v1alpha1.GroupVersion.Version},
		resources: resources, operations: operations}.webhookRule()
}

func ownConditions(manager string) []*admissionregistration.MatchConditionApplyConfiguration {
	return []*admissionregistration.MatchConditionApplyConfiguration{
		condition("not-the-manager", `!has(request.userInfo.username) || request.userInfo.username != `+celLiteral(manager)),
		// Who opened a session stands in an annotation, and whose grant it is in labels; neither must be changed by a
		// request that leaves the spec alone.
		condition("guarded-part-changed", `request.operation != "UPDATE" || object.?spec != oldObject.?spec || `+
			annotation("object", v1alpha1.AnnotationOpenedBy)+" != "+annotation("oldObject", v1alpha1.AnnotationOpenedBy)+` || `+
			`request.resource.resource in ["agentsessions", "permissiongrants"] && object.?metadata.?labels != oldObject.?metadata.?labels`),
	}
}

func (r rule) webhookRule() *admissionregistration.RuleWithOperationsApplyConfiguration {
	return admissionregistration.RuleWithOperations().
		WithAPIGroups(r.groups...).WithAPIVersions(r.versions...).WithResources(r.resources...).
		WithOperations(r.operations...).WithScope(admissionregistrationv1.AllScopes)
}

// everything is the selector that selects all, which is also the API server's default. It is written out, because
// server-side apply gives back only what it owns: whoever narrows an entry would else take requests from it for good.
func everything() *metav1.LabelSelectorApplyConfiguration { return metav1.LabelSelector() }

func condition(name, expression string) *admissionregistration.MatchConditionApplyConfiguration {
	return admissionregistration.MatchCondition().WithName(name).WithExpression(expression)
}
