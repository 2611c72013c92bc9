package certs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
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

	keyBytes = 32
)

var pathPattern = regexp.MustCompile(`^/[0-9a-f]{64}$`)

// Installation is what all replicas share. All of it but the authority's certificate is secret.
type Installation struct {
	Authority *Authority
	// DigestKey keys digests and stamps. A new one makes every old grant and stamp worthless.
	DigestKey kube.Key
	// PathPrefix of the webhook server: "/" and 64 hexadecimal digits. Who cannot read it cannot call the webhook.
	PathPrefix string
}

// +kubebuilder:rbac:groups="",namespace=stepbeyond-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=stepbeyond-system,resources=secrets,resourceNames=stepbeyond-installation,verbs=get

// LoadInstallation reads the installation's Secret, or makes it: the replica that creates it first decides, the others
// read what it made. reader must not be a cache.
func LoadInstallation(ctx context.Context, reader client.Reader, writer client.Writer, namespace string, now time.Time) (*Installation, error) {
	key := client.ObjectKey{Namespace: namespace, Name: InstallationSecret}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		secret, err = newInstallation(namespace, now)
		if err != nil {
			return nil, err
		}
		if err = writer.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
			err = reader.Get(ctx, key, secret)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", key, err)
	}
	return parseInstallation(secret)
}

func newInstallation(namespace string, now time.Time) (*corev1.Secret, error) {
	authority, err := NewAuthority(now)
	if err != nil {
		return nil, err
	}
	random := make([]byte, 2*keyBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make installation keys: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: InstallationSecret},
		Type:       "stepbeyond.dev/installation",
		Data: map[string][]byte{
			fieldCertificate: authority.CertificatePEM, fieldKey: authority.KeyPEM, fieldDigestKey: random[:keyBytes],
			fieldPath: []byte("/" + hex.EncodeToString(random[keyBytes:])),
		},
	}, nil
}

func parseInstallation(secret *corev1.Secret) (*Installation, error) {
	authority, err := ParseAuthority(secret.Data[fieldCertificate], secret.Data[fieldKey])
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	key, err := kube.NewKey(secret.Data[fieldDigestKey])
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s, field %s: %w", secret.Namespace, secret.Name, fieldDigestKey, err)
	}
	path := string(secret.Data[fieldPath])
	if !pathPattern.MatchString(path) {
		return nil, fmt.Errorf("secret %s/%s, field %s: is not a slash and 64 hexadecimal digits", secret.Namespace, secret.Name, fieldPath)
	}
	return &Installation{Authority: authority, DigestKey: key, PathPrefix: path}, nil
}
