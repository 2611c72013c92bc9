package certs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"time"
)

var (
	pathPattern = regexp.MustCompile(`^/[0-9a-f]{64}$`)
	errPath     = errors.New("is not a slash and 64 hexadecimal digits")
)

// Generation is an authority and the secret path that came with it.
type Generation struct {
	// CertificatePEM of the authority.
	CertificatePEM []byte
	// PathPrefix of the webhook server: "/" and 64 hexadecimal digits. Who cannot read it cannot call the webhook.
	PathPrefix string
	// Authority is nil for a generation that signs no more.
	Authority *Authority
}

// NewGeneration makes one.
func NewGeneration(now time.Time, lifetime time.Duration) (*Generation, error) {
	authority, err := NewAuthority(now, lifetime)
	if err != nil {
		return nil, err
	}
	random := make([]byte, keyBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make secret path: %w", err)
	}
	return &Generation{CertificatePEM: authority.CertificatePEM, PathPrefix: "/" + hex.EncodeToString(random), Authority: authority}, nil
}

// ID tells generations apart and says nothing of the path.
func (g *Generation) ID() string {
	sum := sha256.Sum256(append([]byte(g.PathPrefix), g.CertificatePEM...))
	return hex.EncodeToString(sum[:8])
}

// fields of one generation in the Secret.
type fields struct{ certificate, key, path string }

var (
	current  = fields{fieldCertificate, fieldKey, fieldPath}
	next     = fields{"next." + fieldCertificate, "next." + fieldKey, "next." + fieldPath}
	previous = fields{certificate: "previous." + fieldCertificate, path: "previous." + fieldPath}
)

func (f fields) absent(data map[string][]byte) bool {
	for _, name := range []string{f.certificate, f.key, f.path} {
		if _, found := data[name]; found {
			return false
		}
	}
	return true
}

func (f fields) read(data map[string][]byte) (*Generation, error) {
	certificate, err := parseAuthorityCertificate(data[f.certificate])
	if err != nil {
		return nil, fmt.Errorf("field %s: %w", f.certificate, err)
	}
	g := &Generation{CertificatePEM: data[f.certificate], PathPrefix: string(data[f.path])}
	if !pathPattern.MatchString(g.PathPrefix) {
		return nil, fmt.Errorf("field %s: %w", f.path, errPath)
	}
	if f.key == "" {
		return g, nil
	}
	key, err := parseAuthorityKey(data[f.key], certificate)
	if err != nil {
		return nil, fmt.Errorf("field %s: %w", f.key, err)
	}
	g.Authority = &Authority{CertificatePEM: g.CertificatePEM, KeyPEM: data[f.key], certificate: certificate, key: key}
	return g, nil
}

func (f fields) write(data map[string][]byte, g *Generation) {
	data[f.certificate], data[f.path] = g.CertificatePEM, []byte(g.PathPrefix)
	if f.key != "" {
		data[f.key] = g.Authority.KeyPEM
	}
}

func (f fields) clear(data map[string][]byte) {
	delete(data, f.certificate)
	delete(data, f.key)
	delete(data, f.path)
}
