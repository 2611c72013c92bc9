package certs_test

import (
	"crypto/x509"
	"testing"
	"time"

	"stepbeyond.dev/stepbeyond/internal/certs"
)

func TestALeafIsTrustedThroughItsAuthority(t *testing.T) {
	now := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	authority, err := certs.NewAuthority(now, 10*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	again, err := certs.ParseAuthority(authority.CertificatePEM, authority.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := again.Leaf(now, 365*24*time.Hour, "stepbeyond-webhook.stepbeyond-system.svc", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CertificatePEM)
	for _, test := range []struct {
		name, host string
		at         time.Time
		trusted    bool
	}{
		{"the Service's name is covered", "stepbeyond-webhook.stepbeyond-system.svc", now, true},
		{"the address is covered", "127.0.0.1", now, true},
		{"another name is not", "example.com", now, false},
		{"after a year it is not", "127.0.0.1", now.AddDate(1, 0, 1), false},
		{"a clock that is behind by minutes still trusts it", "127.0.0.1", now.Add(-5 * time.Minute), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host, CurrentTime: test.at})
			if (err == nil) != test.trusted {
				t.Errorf("verify: %v, want trusted %v", err, test.trusted)
			}
		})
	}
}

func TestAnAuthorityWhoseKeyDoesNotFitIsRefused(t *testing.T) {
	now := time.Now()
	a, err := certs.NewAuthority(now, 10*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b, err := certs.NewAuthority(now, 10*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certs.ParseAuthority(a.CertificatePEM, b.KeyPEM); err == nil {
		t.Error("a key of another authority was taken")
	}
	if _, err := certs.ParseAuthority([]byte("x"), a.KeyPEM); err == nil {
		t.Error("a certificate that is no PEM was taken")
	}
}
