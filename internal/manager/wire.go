package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	"stepbeyond.dev/stepbeyond/internal/controller/agentpolicy"
	"stepbeyond.dev/stepbeyond/internal/controller/agentsession"
	enforcementcontroller "stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/notify"
	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/rotation"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/webhook"
)

// parts are what webhooks and controllers share.
type parts struct {
	mgr      ctrl.Manager
	direct   client.WithWatch // past any cache
	guard    *enforcement.Guard
	keeper   *rotation.Keeper
	ending   *drain
	store    *policystore.Store
	sessions *identity.Resolver
	protocol *grant.Protocol
	stamper  stamp.Stamper
	state    *enforcementcontroller.State
	notifier *notify.Notifier
}

// wire makes every part and registers it with the manager.
func wire(ctx context.Context, mgr ctrl.Manager, options Options, keeper *rotation.Keeper, ending *drain) error {
	notifier, err := newNotifier(options)
	if err != nil {
		return err
	}
	direct, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("make the client that reads and watches past any cache: %w", err)
	}
	guard, err := newGuard(ctx, direct, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	if err := identity.IndexSessions(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	key := keeper.Current().Installation.DigestKey
	p := &parts{
		mgr: mgr, keeper: keeper, ending: ending, direct: direct, guard: guard, notifier: notifier,
		store:    &policystore.Store{Reader: mgr.GetClient()},
		sessions: &identity.Resolver{Cached: mgr.GetClient(), Live: mgr.GetAPIReader()},
		stamper:  stamp.Stamper{Key: key[:]},
		state:    &enforcementcontroller.State{},
	}
	p.protocol = &grant.Protocol{
		Client: direct, Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(),
		Key: key, Now: time.Now,
	}
	onboarding, err := p.onboarding()
	if err != nil {
		return err
	}
	if err := p.addWebhooks(onboarding); err != nil {
		return err
	}
	if err := p.addRotation(); err != nil {
		return err
	}
	return p.addControllers(ctx, options)
}

// addWebhooks serves admission on every replica. A replica is ready when its policies are loaded and its certificate is
// served; until then its answers are refusals.
func (p *parts) addWebhooks(onboarding admission.Handler) error {
	if err := webhook.RegisterMetrics(); err != nil {
		return fmt.Errorf("register admission metrics: %w", err)
	}
	server := p.mgr.GetWebhookServer()
	handlers := map[string]http.Handler{
		enforcement.PathEnforce: &webhook.Reviewer{Handler: &webhook.Enforce{
			Store: p.store, Sessions: p.sessions, Grants: p.protocol, Stamper: p.stamper, Now: time.Now,
			Origins: &origin.Finder{Live: p.mgr.GetAPIReader(), Mapper: p.mgr.GetRESTMapper(), Stamper: p.stamper},
		}},
		enforcement.PathOrigin: &webhook.Reviewer{Handler: &webhook.Origin{
			Store: p.store, Sessions: p.sessions, Stamper: p.stamper, Now: time.Now,
		}},
		enforcement.PathAuthorize:    p.authorize(),
		enforcement.PathOnboarding:   &webhook.Reviewer{Handler: onboarding},
		enforcement.PathObjectsStamp: &admission.Webhook{Handler: &webhook.ObjectsStamp{Store: p.store, Now: time.Now}},
		enforcement.PathObjects: &admission.Webhook{Handler: &webhook.Objects{
			Store: p.store, Reader: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Access: webhook.SubjectAccess(p.mgr.GetClient()),
			Now: time.Now,
		}},
	}
	// The server itself knows no secret path, which it would tell in its log and metrics.
	server.Register("/", p.ending.handler(p.keeper.Route(handlers)))
	if err := p.mgr.AddReadyzCheck("ending", p.ending.ready); err != nil {
		return fmt.Errorf("add readiness of a replica that goes on: %w", err)
	}
	if err := p.mgr.AddReadyzCheck("policies", p.store.Ready); err != nil {
		return fmt.Errorf("add readiness of policies: %w", err)
	}
	if err := p.mgr.AddReadyzCheck("webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("add readiness of the webhook server: %w", err)
	}
	return nil
}

func (p *parts) addControllers(ctx context.Context, options Options) error {
	canary, err := enforcement.NewCanary(p.mgr.GetConfig())
	if err != nil {
		return err
	}
	self, err := username(ctx, p.mgr.GetClient())
	if err != nil {
		return err
	}
	releases := enforcementcontroller.NewReleasesMetric()
	if err := metrics.Registry.Register(releases); err != nil {
		return fmt.Errorf("register the metric of released namespaces: %w", err)
	}
	files, err := p.controlPlaneFiles(options)
	if err != nil {
		return err
	}
	grants, err := p.grants()
	if err != nil {
		return err
	}
	c, live, recorder := p.mgr.GetClient(), p.mgr.GetAPIReader(), p.recorder()
	allowed := &roles.Roles{Reader: c}
	canary.Servers = enforcement.PublishedServers{Live: live}
	watchdog, err := p.watchdog()
	if err != nil {
		return err
	}
	for _, controller := range append([]interface{ SetupWithManager(ctrl.Manager) error }{
		p.store, allowed, files,
		&enforcementcontroller.Scope{
			Client: c, Live: live, Store: p.store, Canary: canary, Endpoint: p.keeper, Manager: self, State: p.state,
			Guard: watchdog.Guard, Alarm: watchdog.Alarm,
			Releases: &enforcementcontroller.Releases{Client: c, Recorder: recorder, Metric: releases},
		},
		watchdog,
		&enforcementcontroller.Status{Client: c, Store: p.store, State: p.state, Roles: allowed, Recorder: recorder},
		&agentpolicy.Status{Client: c, Store: p.store},
		&agentsession.Birth{Client: c, Live: live, Store: p.store, Recorder: recorder},
		&agentsession.Status{Client: c, Live: live, Store: p.store, Proof: p.state, Roles: allowed, Manager: self},
		&agentsession.Retention{Client: c, Store: p.store},
	}, grants...) {
		if err := controller.SetupWithManager(p.mgr); err != nil {
			return err
		}
	}
	return nil
}
