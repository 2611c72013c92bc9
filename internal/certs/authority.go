// Package certs makes the certificates of the webhook server: a certificate authority that all replicas share, and a leaf
// that each replica signs for itself and never writes anywhere. The Secret stepbeyond-installation holds what is shared,
// also while it is rotated; package rotation moves it from phase to phase.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// clockSkew is how far the clock of an API server may be behind that of the replica which signs.
const clockSkew = time.Hour

var (
	errNotPEM  = errors.New("is not one PEM block of the expected type")
	errNotACA  = errors.New("is not the certificate of an authority")
	errNoMatch = errors.New("does not belong to the certificate")
)

// Authority signs leaves.
type Authority struct {
	// CertificatePEM is what the API server trusts.
	CertificatePEM []byte
	// KeyPEM is secret.
	KeyPEM []byte

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes one that is valid for lifetime from now on.
func NewAuthority(now time.Time, lifetime time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate authority key: %w", err)
	}
	template, err := certificate("stepbeyond-webhook-ca", now, now.Add(lifetime))
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode authority key: %w", err)
	}
	return ParseAuthority(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	)
}

// ParseAuthority reads what NewAuthority made. The error names the part that is wrong and never its content.
func ParseAuthority(certificatePEM, keyPEM []byte) (*Authority, error) {
	parsed, err := parseAuthorityCertificate(certificatePEM)
	if err != nil {
		return nil, fmt.Errorf("authority certificate: %w", err)
	}
	key, err := parseAuthorityKey(keyPEM, parsed)
	if err != nil {
		return nil, fmt.Errorf("authority key: %w", err)
	}
	return &Authority{CertificatePEM: certificatePEM, KeyPEM: keyPEM, certificate: parsed, key: key}, nil
}

func parseAuthorityCertificate(encoded []byte) (*x509.Certificate, error) {
	der, err := block(encoded, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot be parsed: %w", err)
	}
	if !parsed.IsCA {
		return nil, errNotACA
	}
	return parsed, nil
}

func parseAuthorityKey(encoded []byte, certificate *x509.Certificate) (*ecdsa.PrivateKey, error) {
	der, err := block(encoded, "EC PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, errors.New("cannot be parsed") // the parser's words could repeat what it read
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errNoMatch
	}
	return key, nil
}

// Issued is when the authority was made.
func (a *Authority) Issued() time.Time { return a.certificate.NotBefore.Add(clockSkew) }

// NotAfter is when the authority expires, and with it every leaf.
func (a *Authority) NotAfter() time.Time { return a.certificate.NotAfter }

// Leaf makes a serving certificate for the hosts, names or IP addresses, that is valid for lifetime, and not longer than
// the authority. Its field Leaf is set.
func (a *Authority) Leaf(now time.Time, lifetime time.Duration, hosts ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate serving key: %w", err)
	}
	end := now.Add(lifetime)
	if a.NotAfter().Before(end) {
		end = a.NotAfter()
	}
	template, err := certificate("stepbeyond-webhook", now, end)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign serving certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse serving certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key, Leaf: parsed}, nil
}

func certificate(name string, now, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-clockSkew), NotAfter: end,
	}, nil
}

func block(encoded []byte, kind string) ([]byte, error) {
	decoded, _ := pem.Decode(encoded)
	if decoded == nil || decoded.Type != kind {
		return nil, errNotPEM
	}
	return decoded.Bytes, nil
}
