package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// shortRotation makes a rotation short. An API server acts on a new configuration within a second or two.
func shortRotation() []string {
	return []string{
		"--authority-lifetime=24h", "--certificate-lifetime=1h", "--rotate-every=12h",
		"--rotation-settle=5s", "--rotation-overlap=5s", "--rotation-poll=500ms",
	}
}

// expiresIn leaves time to start the replicas and to measure before the expiry.
const expiresIn = 45 * time.Second

func certificateExpired() *row {
	return &row{
		name: "certificate-expired", title: "Certificate expiry",
		auto: "refused", args: shortRotation(),
		done:     "The replicas run with an authority, and so a serving certificate, that expires while they run and before a rotation is due. After the fault a person asks for a rotation.",
		expected: "AUTO and ASK are refused, fail closed: the API server does not trust the webhook. FORBIDDEN has the floor's answer.",
		prepare:  shortAuthority,
		await: func(ctx context.Context, s *scene) error {
			in, err := s.installation(ctx)
			if err != nil {
				return err
			}
			err = pause(ctx, time.Until(in.Current.Authority.NotAfter().Add(time.Second)))
			s.balancer.Cut() // a connection from before the expiry is not verified again
			return err
		},
		begin:  settled,
		end:    rotate,
		person: "annotate the Secret with " + certs.AnnotationRotate,
	}
}

func authorityRotated() *row {
	return &row{
		name: "authority-rotated", title: "CA rotation under load",
		auto: "allowed, but for writes that were on a connection when it was cut", args: shortRotation(), writers: manyWriters, hold: time.Second,
		done:     "A rotation of authority, serving certificates and secret path is asked for, and waited for, while the agent makes 100 ConfigMaps per second; then all connections are cut.",
		expected: "AUTO is allowed all the time.",
		begin: func(ctx context.Context, s *scene) error {
			if err := rotate(ctx, s); err != nil {
				return err
			}
			s.balancer.Cut()
			return nil
		},
		end: settled,
	}
}

func (s *scene) installation(ctx context.Context) (*certs.Installation, error) {
	_, in, err := certs.ReadInstallation(ctx, s.admin, env.SystemNamespace)
	return in, err
}

func (s *scene) editInstallation(ctx context.Context, change func(*corev1.Secret)) error {
	return eventually(ctx, func() error {
		secret := &corev1.Secret{}
		if err := s.admin.Get(ctx, client.ObjectKey{Namespace: env.SystemNamespace, Name: certs.InstallationSecret}, secret); err != nil {
			return fmt.Errorf("installation: %w", err)
		}
		change(secret)
		if err := s.admin.Update(ctx, secret); err != nil {
			return fmt.Errorf("installation: %w", err)
		}
		return nil
	})
}

// shortAuthority starts the replicas again with an authority that expires soon.
func shortAuthority(ctx context.Context, s *scene) error {
	if err := s.takeDown((*env.Manager).Stop); err != nil {
		return err
	}
	authority, err := certs.NewAuthority(time.Now(), expiresIn)
	if err != nil {
		return err
	}
	if err := s.editInstallation(ctx, func(secret *corev1.Secret) {
		secret.Data["ca.crt"], secret.Data["ca.key"] = authority.CertificatePEM, authority.KeyPEM
	}); err != nil {
		return err
	}
	if err := s.startManagers(ctx); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		return s.agent.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "probe"}}, client.DryRunAll)
	})
}

// rotate does what kubectl annotate secret stepbeyond-installation stepbeyond.dev/rotate=now does, and waits until it is over.
func rotate(ctx context.Context, s *scene) error {
	before, err := s.installation(ctx)
	if err != nil {
		return err
	}
	if err := s.editInstallation(ctx, func(secret *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, certs.AnnotationRotate, certs.RotateNow)
	}); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		in, err := s.installation(ctx)
		if err == nil && (in.Rotations == before.Rotations || in.Phase() != certs.PhaseSteady) {
			err = fmt.Errorf("phase %s after %d rotations", in.Phase(), in.Rotations)
		}
		return err
	})
}
