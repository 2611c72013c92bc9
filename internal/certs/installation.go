package certs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// InstallationSecret holds what all replicas of one installation share.
const InstallationSecret = "stepbeyond-installation"

const (
	fieldCertificate = "ca.crt"
	fieldKey         = "ca.key"
	fieldDigestKey   = "digest.key"
	fieldPath        = "webhook.path"
	fieldRotations   = "rotations"

	keyBytes = 32
)

// ErrInvalid is in every error about the content of the Secret, which names the field and never repeats what it holds.
var ErrInvalid = errors.New("installation")

// Installation is what all replicas share. All of it but the certificates is secret.
type Installation struct {
	// DigestKey keys digests and stamps. A new one makes every old grant and stamp worthless.
	DigestKey kube.Key
	// Rotations counts how often Current was replaced.
	Rotations int
	// Current signs the leaves, and its path is the one that the API server calls.
	Current *Generation
	// Next is trusted and served, and signs nothing yet; nil except in PhaseDistributing.
	Next *Generation
	// Previous is still trusted and served; nil except in PhaseOverlapping.
	Previous *Generation
}

// Phase of a rotation.
type Phase string

const (
	// PhaseSteady: there is one generation.
	PhaseSteady Phase = "Steady"
	// PhaseDistributing: API servers learn to trust the next authority, and replicas to serve the next path.
	PhaseDistributing Phase = "Distributing"
	// PhaseOverlapping: the new generation is in use, and the old one is still good.
	PhaseOverlapping Phase = "Overlapping"
)

// Phase is what the fields say.
func (i *Installation) Phase() Phase {
	switch {
	case i.Next != nil:
		return PhaseDistributing
	case i.Previous != nil:
		return PhaseOverlapping
	default:
		return PhaseSteady
	}
}

// Generations that are good, oldest first.
func (i *Installation) Generations() []*Generation {
	var all []*Generation
	for _, g := range []*Generation{i.Previous, i.Current, i.Next} {
		if g != nil {
			all = append(all, g)
		}
	}
	return all
}

// Bundle is every certificate that API servers have to trust. A switch from next to current does not change it.
func (i *Installation) Bundle() []byte {
	var bundle []byte
	for _, g := range i.Generations() {
		bundle = append(append(bundle, bytes.TrimSpace(g.CertificatePEM)...), '\n')
	}
	return bundle
}

// +kubebuilder:rbac:groups="",namespace=stepbeyond-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=stepbeyond-system,resources=secrets,resourceNames=stepbeyond-installation,verbs=get

// LoadInstallation reads the installation's Secret, or makes it with an authority that lives as long as lifetime says: the
// replica that creates it first decides, the others read what it made. Where there was an installation before,
// AwaitInstallation comes first. reader must not be a cache.
func LoadInstallation(ctx context.Context, reader client.Reader, writer client.Writer, namespace string, now time.Time, lifetime time.Duration) (*Installation, error) {
	_, installation, err := ReadInstallation(ctx, reader, namespace)
	if !apierrors.IsNotFound(err) {
		return installation, err
	}
	secret, err := newInstallation(namespace, now, lifetime)
	if err != nil {
		return nil, err
	}
	switch err := writer.Create(ctx, secret); {
	case apierrors.IsAlreadyExists(err):
		_, installation, err := ReadInstallation(ctx, reader, namespace)
		return installation, err
	case err != nil:
		return nil, fmt.Errorf("create secret %s/%s: %w", namespace, InstallationSecret, err)
	default:
		return parseInstallation(secret)
	}
}

// ReadInstallation reads the Secret; an error about what it holds is ErrInvalid. The Secret is not nil unless it could not
// be read.
func ReadInstallation(ctx context.Context, reader client.Reader, namespace string) (*corev1.Secret, *Installation, error) {
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: InstallationSecret}, secret); err != nil {
		return nil, nil, fmt.Errorf("secret %s/%s: %w", namespace, InstallationSecret, err)
	}
	installation, err := parseInstallation(secret)
	return secret, installation, err
}

func newInstallation(namespace string, now time.Time, lifetime time.Duration) (*corev1.Secret, error) {
	generation, err := NewGeneration(now, lifetime)
	if err != nil {
		return nil, err
	}
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make digest key: %w", err)
	}
	return (&Installation{DigestKey: kube.Key(key), Current: generation}).Secret(namespace), nil
}

// Secret is what the installation is stored as.
func (i *Installation) Secret(namespace string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: InstallationSecret},
		Type:       "stepbeyond.dev/installation",
		Data:       map[string][]byte{fieldDigestKey: i.DigestKey[:], fieldRotations: []byte(strconv.Itoa(i.Rotations))},
	}
	current.write(secret.Data, i.Current)
	if i.Next != nil {
		next.write(secret.Data, i.Next)
	}
	if i.Previous != nil {
		previous.write(secret.Data, i.Previous)
	}
	return secret
}

func parseInstallation(secret *corev1.Secret) (*Installation, error) {
	installation, err := parseData(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: secret %s/%s: %w", ErrInvalid, secret.Namespace, secret.Name, err)
	}
	return installation, nil
}

func parseData(data map[string][]byte) (*Installation, error) {
	key, err := kube.NewKey(data[fieldDigestKey])
	if err != nil {
		return nil, fmt.Errorf("field %s: %w", fieldDigestKey, err)
	}
	installation := &Installation{DigestKey: key}
	if text, found := data[fieldRotations]; found {
		if installation.Rotations, err = strconv.Atoi(string(text)); err != nil || installation.Rotations < 0 {
			return nil, fmt.Errorf("field %s: is not a number of rotations", fieldRotations)
		}
	}
	if installation.Current, err = current.read(data); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		fields fields
		into   **Generation
	}{{next, &installation.Next}, {previous, &installation.Previous}} {
		if part.fields.absent(data) {
			continue
		}
		if *part.into, err = part.fields.read(data); err != nil {
			return nil, err
		}
	}
	if installation.Next != nil && installation.Previous != nil {
		return nil, fmt.Errorf("field %s: no rotation begins before the last one has ended", next.certificate)
	}
	return installation, nil
}
