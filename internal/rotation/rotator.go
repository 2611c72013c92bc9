package rotation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/internal/certs"
)

// Rotator moves a rotation on. Only the leader has one that runs.
type Rotator struct {
	Keeper *Keeper
	Client client.Client
	// Proven tells whether webhook and floor refuse the canary.
	Proven   func() bool
	Recorder events.EventRecorder

	replicas replicas
	ready    hold
	waiting  string
	told     map[string]time.Time
}

// +kubebuilder:rbac:groups="",namespace=stepbeyond-system,resources=secrets,resourceNames=stepbeyond-installation,verbs=get;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// NeedLeaderElection is true.
func (r *Rotator) NeedLeaderElection() bool { return true }

// Start looks with every poll, until the context ends.
func (r *Rotator) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("rotator"))
	var said complaint
	for {
		said.about(ctx, r.Step(ctx), "The rotation waits")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(r.Keeper.settings.Timing.Poll):
		}
	}
}

// Step takes the next step of a rotation if everything is ready for it.
func (r *Rotator) Step(ctx context.Context) error {
	s := &r.Keeper.settings
	secret, installation, err := certs.ReadInstallation(ctx, s.Live, s.Namespace)
	if err == nil {
		err = r.Keeper.adopt(installation)
	}
	if err != nil {
		r.ready = hold{}
		if unusable(err) {
			r.warn(EventUnusable, err.Error())
		}
		return errors.Join(err, r.restore(ctx, err))
	}
	v, err := r.view(ctx, secret, installation)
	if err != nil {
		r.ready = hold{}
		return err
	}
	waitsFor := v.waitsFor()
	r.warnOfExpiry(installation, cmp.Or(waitsFor, "time"))
	if waitsFor != "" {
		r.ready = hold{}
		r.logWait(ctx, v.phase, waitsFor)
		return nil
	}
	what := string(v.phase) + "/" + installation.Current.ID()
	if r.ready.lasted(what, s.Now()) < v.holds(s.Timing) {
		r.logWait(ctx, v.phase, "time")
		return nil
	}
	return r.take(ctx, secret, v)
}

// restore makes a Secret that is gone again from what is served: a replica that starts would else make another installation,
// whose authority nobody trusts and whose digest key makes every grant worthless.
func (r *Rotator) restore(ctx context.Context, problem error) error {
	if !apierrors.IsNotFound(problem) {
		return nil
	}
	secret := r.Keeper.Current().Installation.Secret(r.Keeper.settings.Namespace)
	if err := r.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("make the secret %s again: %w", secret.Name, err)
	}
	return nil
}

func (r *Rotator) view(ctx context.Context, secret *corev1.Secret, installation *certs.Installation) (view, error) {
	s := &r.Keeper.settings
	v := view{phase: installation.Phase(), due: r.due(secret, installation), proven: r.Proven()}
	alive, err := r.replicas.look(ctx, s.Live, r.Client, s.Namespace, s.Now(), s.Timing.GoneAfter())
	if err != nil {
		return view{}, err
	}
	v.replicas, v.lagging = len(alive), lagging(alive, installation)
	if v.inForce, err = r.Keeper.endpointOf(installation).InForce(ctx, s.Live); err != nil {
		return view{}, err
	}
	return v, nil
}

// due is why the installation has to be rotated.
func (r *Rotator) due(secret *corev1.Secret, installation *certs.Installation) string {
	s := &r.Keeper.settings
	switch value, asked := secret.Annotations[certs.AnnotationRotate]; {
	case asked && value == certs.RotateNow:
		return "annotation " + certs.AnnotationRotate
	case asked:
		r.warn(EventRequestInvalid, fmt.Sprintf("Annotation %s: %s is not %q.", certs.AnnotationRotate, quoted(value), certs.RotateNow))
	}
	if age := s.Now().Sub(installation.Current.Authority.Issued()); age >= s.Timing.RotateEvery {
		return "age"
	}
	return ""
}

// take writes the next phase, on the condition that nobody has written meanwhile.
func (r *Rotator) take(ctx context.Context, secret *corev1.Secret, v view) error {
	s := &r.Keeper.settings
	var err error
	var written *corev1.Secret
	switch v.phase {
	case certs.PhaseSteady:
		written, err = certs.Distribute(secret, s.Now(), s.Timing.AuthorityLifetime)
	case certs.PhaseDistributing:
		written, err = certs.Switch(secret)
	case certs.PhaseOverlapping:
		written, err = certs.Retire(secret)
	}
	if err != nil {
		return err
	}
	if err := r.Client.Update(ctx, written); err != nil {
		return fmt.Errorf("write the next phase after %s: %w", v.phase, err)
	}
	log.FromContext(ctx).Info("Rotation goes on", "after", v.phase, "due", v.due, "replicas", v.replicas)
	if v.phase == certs.PhaseOverlapping {
		r.Recorder.Eventf(r.secret(), nil, corev1.EventTypeNormal, EventRotated, actionRotate, "The authority and the secret path of the webhook are new.")
	}
	// The webhook configurations follow what the Keeper has.
	return r.Keeper.Refresh(ctx)
}

func (r *Rotator) logWait(ctx context.Context, phase certs.Phase, what string) {
	if text := string(phase) + what; r.waiting != text {
		r.waiting = text
		if phase != certs.PhaseSteady {
			log.FromContext(ctx).Info("Rotation waits", "phase", phase, "for", what)
		}
	}
}

// Events on the installation's Secret.
const (
	// EventRotated is Normal: a rotation has ended.
	EventRotated = "CertificateRotated"
	// EventRequestInvalid is a Warning: the annotation that asks for a rotation has another value than "now".
	EventRequestInvalid = "RotationRequestInvalid"
	// EventExpiring is a Warning: a rotation should have been over long ago, and the authority expires.
	EventExpiring = "CertificateExpiring"
	// EventUnusable is a Warning: the Secret is gone or was edited, and the replicas serve what they read before.
	EventUnusable = "InstallationUnusable"

	actionRotate = "Rotate"
	// warnEvery is how often a warning is repeated.
	warnEvery = time.Hour
)

// warnOfExpiry warns when half of the time is over in which a rotation can be late.
func (r *Rotator) warnOfExpiry(installation *certs.Installation, waitsFor string) {
	s := &r.Keeper.settings
	end := installation.Current.Authority.NotAfter()
	if left := end.Sub(s.Now()); left < (s.Timing.AuthorityLifetime-s.Timing.RotateEvery)/2 {
		r.warn(EventExpiring, fmt.Sprintf(
			"The webhook's authority expires at %s, and then every governed write is refused. Its rotation is in phase %s and waits for %s.",
			end.UTC().Format(time.RFC3339), installation.Phase(), waitsFor))
	}
}

func (r *Rotator) warn(reason, text string) {
	now := r.Keeper.settings.Now()
	if last, told := r.told[reason]; told && now.Sub(last) < warnEvery {
		return
	}
	if r.told == nil {
		r.told = map[string]time.Time{}
	}
	r.told[reason] = now
	r.Recorder.Eventf(r.secret(), nil, corev1.EventTypeWarning, reason, actionRotate, "%s", text)
}

// secret is what the events are about.
func (r *Rotator) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Keeper.settings.Namespace, Name: certs.InstallationSecret}}
}

// quoted is the beginning of a text that somebody wrote.
func quoted(text string) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
