package manager

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
)

var (
	errNoCertificate         = errors.New("holds no PEM certificate")
	errNamesAlone            = errors.New("needs client-ca-file: names say nothing without an authority that vouches for them")
	errAuthorizerCertificate = errors.New("needs authorization-client-certificate and authorization-client-key: without them the webhook would refuse the authorizer of every API server")
	errHalfCertificate       = errors.New("one of both is missing")
	errOtherName             = errors.New("the client certificate is for none of the names in client-names")
)

// clientAuthentication makes a webhook server ask its callers for a certificate, if the options say so.
func (o *Options) clientAuthentication() (func(*tls.Config), error) {
	if o.ClientCAFile == "" {
		if len(o.ClientNames) > 0 {
			return nil, fmt.Errorf("client-names: %w", errNamesAlone)
		}
		return func(*tls.Config) {}, nil
	}
	if o.AuthorizationURL != "" && (o.AuthorizationClientCertificate == "" || o.AuthorizationClientKey == "") {
		return nil, fmt.Errorf("client-ca-file: %w", errAuthorizerCertificate)
	}
	text, err := os.ReadFile(o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("client-ca-file: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("client-ca-file: %s %w", o.ClientCAFile, errNoCertificate)
	}
	return func(c *tls.Config) {
		c.ClientCAs, c.ClientAuth = authorities, tls.RequireAndVerifyClientCert
		if len(o.ClientNames) > 0 {
			c.VerifyConnection = o.verifyName
		}
	}, nil
}

// verifyName runs after the chain was verified.
func (o *Options) verifyName(state tls.ConnectionState) error {
	certificate := state.PeerCertificates[0]
	for _, name := range append(certificate.DNSNames, certificate.Subject.CommonName) {
		if slices.Contains(o.ClientNames, name) {
			return nil
		}
	}
	return errOtherName
}
