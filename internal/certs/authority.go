// Package certs makes the certificates of the webhook server: a certificate authority that all replicas share, and a leaf
// that each replica signs for itself at start and never writes anywhere.
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

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	// clockSkew between the replicas and the API server that a new certificate tolerates.
	clockSkew = 10 * time.Minute
)

var errNotPEM = errors.New("is not one PEM block of the expected type")

// Authority signs leaves.
type Authority struct {
	// CertificatePEM is what the API server trusts.
	CertificatePEM []byte
	// KeyPEM is secret.
	KeyPEM []byte

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes one that is valid for ten years.
func NewAuthority(now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate authority key: %w", err)
	}
	template, err := certificate("stepbeyond-webhook-ca", now, authorityLifetime)
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
	der, err := block(certificatePEM, "CERTIFICATE")
	if err != nil {
		return nil, fmt.Errorf("authority certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("authority certificate: %w", err)
	}
	der, err = block(keyPEM, "EC PRIVATE KEY")
	if err != nil {
		return nil, fmt.Errorf("authority key: %w", err)
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, errors.New("authority key: cannot be parsed")
	}
	if !key.PublicKey.Equal(parsed.PublicKey) {
		return nil, errors.New("authority key: does not belong to the certificate")
	}
	return &Authority{CertificatePEM: certificatePEM, KeyPEM: keyPEM, certificate: parsed, key: key}, nil
}

// Leaf makes a serving certificate for the hosts, names or IP addresses, that is valid for a year.
func (a *Authority) Leaf(now time.Time, hosts ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate serving key: %w", err)
	}
	template, err := certificate("stepbeyond-webhook", now, leafLifetime)
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
	return &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}, nil
}

func certificate(name string, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
	}, nil
}

func block(encoded []byte, kind string) ([]byte, error) {
	decoded, _ := pem.Decode(encoded)
	if decoded == nil || decoded.Type != kind {
		return nil, errNotPEM
	}
	return decoded.Bytes, nil
}
