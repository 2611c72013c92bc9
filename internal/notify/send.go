package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

const (
	// sendWithin bounds one delivery, from resolving the name to the end of the answer.
	sendWithin = 8 * time.Second
	// maxAnswer is how much of an answer is read; nothing of it is used.
	maxAnswer = 4 << 10
	// maxRetryAfter bounds what an endpoint can ask for.
	maxRetryAfter = time.Hour
)

var (
	errURL         = errors.New("the URL is not https://host[:port]/path, without a user and a fragment")
	errAuthorities = errors.New("the authorities are no PEM certificates")
	errKeptAway    = errors.New("redirects are not followed")
)

// refusal is an answer that does not take the message.
type refusal struct {
	status string
	// wait is how long the endpoint asks to be left alone; 0 when it does not.
	wait time.Duration
	why  error
}

func (r *refusal) Error() string {
	if r.why != nil {
		return "it answered " + r.status + ": " + r.why.Error()
	}
	return "it answered " + r.status
}

func (r *refusal) Unwrap() error { return r.why }

// sender delivers to one endpoint.
type sender struct {
	endpoint *managerconfig.Notification
	secrets  Secrets
	format   format
	guard    guard
	now      func() time.Time
}

func newSender(endpoint *managerconfig.Notification, secrets Secrets, now func() time.Time) *sender {
	return &sender{endpoint: endpoint, secrets: secrets, format: formats[endpoint.Type], guard: newGuard(endpoint.AllowedNetworks), now: now}
}

// send delivers one message. No error says anything of the URL beyond its addresses: who knows the URL can post.
func (s *sender) send(ctx context.Context, m *message) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	request, err := s.request(ctx, m)
	if err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err // what is around it is the URL
	}
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return &refusal{status: strconv.Itoa(code), why: errKeptAway}
	default:
		return &refusal{status: strconv.Itoa(code), wait: retryAfter(response.Header, s.now())}
	}
}

func (s *sender) request(ctx context.Context, m *message) (*http.Request, error) {
	address, err := s.secrets.read(s.endpoint.URLSecretRef)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return nil, errURL
	}
	body, err := s.format.render(m)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errURL
	}
	request.Header.Set("Content-Type", s.format.contentType)
	request.Header.Set("User-Agent", "stepbeyond")
	if s.endpoint.SigningSecretRef == nil {
		return request, nil
	}
	text, err := s.secrets.read(s.endpoint.SigningSecretRef)
	if err != nil {
		return nil, err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, err
	}
	return request, sign(request.Header, keys, m.id, s.now(), body)
}

// client connects where the guard lets it, and through no proxy, which would connect for it. Every delivery has its own
// connection: there are few, and an address that was good once is asked about again.
func (s *sender) client() (*http.Client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if ref := s.endpoint.AuthoritiesSecretRef; ref != nil {
		text, err := s.secrets.read(ref)
		if err != nil {
			return nil, err
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM([]byte(text)) {
			return nil, errAuthorities
		}
	}
	return &http.Client{
		Timeout: sendWithin,
		Transport: &http.Transport{
			DialContext: s.guard.dialer().DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: connectWithin,
			DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3); 0 for none and for nonsense.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(text); err == nil {
		wait = date.Sub(now)
	}
	return min(max(0, wait), maxRetryAfter)
}
