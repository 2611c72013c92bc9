package manager

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"stepbeyond.dev/stepbeyond/internal/controller/controlplane"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/webhook"
)

// authorize is the authorization webhook, which every replica serves for the control planes that use it.
func (p *parts) authorize() http.Handler {
	return &webhook.Authorize{
		Store: p.store, Sessions: p.sessions, Scope: enforcement.InForce{Live: p.mgr.GetAPIReader()}.Scope,
		Mapper: p.mgr.GetRESTMapper(), Now: time.Now,
	}
}

// controlPlaneFiles keeps what the hosts of the control plane need for that webhook and for the static manifests.
func (p *parts) controlPlaneFiles(options Options) (*controlplane.Files, error) {
	hosts, err := options.webhookHosts()
	if err != nil {
		return nil, err
	}
	if options.AuthorizationURL != "" && !validURL(options.AuthorizationURL) {
		return nil, fmt.Errorf("authorization-url: %q %w", options.AuthorizationURL, errWebhookURL)
	}
	if (options.AuthorizationClientCertificate == "") != (options.AuthorizationClientKey == "") {
		return nil, fmt.Errorf("authorization-client-certificate and authorization-client-key: %w", errHalfCertificate)
	}
	return &controlplane.Files{
		Client: p.mgr.GetClient(), Store: p.store, ScopeChanged: p.state.Changed(),
		Scope: func() (enforcement.Scope, bool) {
			observed := p.state.Current()
			return observed.Scope, observed.Known() && !observed.Proof.Time.IsZero()
		},
		Endpoint: func(ctx context.Context) (enforcement.Endpoint, error) {
			endpoint, err := p.keeper.Endpoint(ctx)
			endpoint.URL = cmp.Or(options.AuthorizationURL, options.WebhookURL)
			return endpoint, err
		},
		EndpointChanged: p.keeper.Changed(),
		ControlPlane: enforcement.ControlPlane{
			ServerName: hosts[0], Directory: options.ControlPlaneDirectory,
			ClientCertificate: options.AuthorizationClientCertificate, ClientKey: options.AuthorizationClientKey,
		},
	}, nil
}
