package enforcement

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/policy"
)

// FieldOwner owns everything that the manager puts into force.
const FieldOwner = client.FieldOwner("stepbeyond-manager")

// Object is an apply configuration of one object.
type Object interface {
	runtime.ApplyConfiguration
	GetKind() *string
	GetName() *string
}

// Configuration is everything that the API server enforces.
type Configuration struct {
	Scope Scope
	// Watched are the namespaces that are decided about and never refused anything, with the exempt ServiceAccounts in
	// them; those that Scope covers count as covered.
	Watched  Scope
	Endpoint Endpoint
	// Manager is the manager's own username.
	Manager string
	// Catalogue is the baseline's; its entries that escalate authority become part of the floor.
	Catalogue []policy.CatalogueEntry
	// Version is the baseline's: "v1".
	Version string
	// Forbidden is what the cluster policies forbid beyond the baseline.
	Forbidden Forbidden
}

// Objects are the floor, then the mutating, then the validating webhook configuration, in the order in which Guard.Put
// writes them. There are none unless all of it compiles, so a scope that is refused leaves the last one in force. A scope
// of any size is one object of each name, so within an object a change of scope is atomic; between them a new identity
// meets the floor first, and one that leaves keeps the webhook longest.
func (cfg Configuration) Objects() ([]Object, error) {
	floor, err := Floor(cfg.Scope, cfg.Catalogue, cfg.Version, cfg.Forbidden.floorPolicy())
	if err != nil {
		return nil, err
	}
	webhooks, err := Webhooks(cfg.Scope, cfg.Endpoint, cfg.Manager)
	if err != nil {
		return nil, err
	}
	withOnboarding(webhooks, cfg.Watched, cfg.Scope, cfg.Endpoint)
	return append(floor, webhooks...), nil
}

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "stepbeyond"}
}
