// Package managerconfig is the manager's configuration file. It is a file and no kind of the API: changing it touches no
// grant, and only who deploys the manager can write it.
package managerconfig

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// What every file begins with.
const (
	APIVersion = "config.stepbeyond.dev/v1alpha1"
	Kind       = "ManagerConfig"
)

// ManagerConfig is the whole file.
type ManagerConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Notifications are the endpoints that tell people, at most 16, each with a name of its own. Omitted: nobody is told
	// anything but what the API shows.
	Notifications []Notification `json:"notifications,omitempty"`
}

// NotificationType is how an endpoint is spoken to.
type NotificationType string

const (
	// SignedHTTP posts CloudEvents 1.0 in structured JSON, signed as Standard Webhooks are.
	SignedHTTP NotificationType = "SignedHTTP"
	// SlackIncomingWebhook posts what Slack, and what speaks like it, shows in a channel.
	SlackIncomingWebhook NotificationType = "SlackIncomingWebhook"
)

// Event is what people are told of.
type Event string

const (
	// GrantPending: an agent asked a question.
	GrantPending Event = "GrantPending"
	// GrantExpiring: a question waits, or an approval is not used, and its time is nearly over.
	GrantExpiring Event = "GrantExpiring"
	// EnforcementLost: a canary request was not refused as it should have been.
	EnforcementLost Event = "EnforcementLost"
	// NamespaceLeft: a namespace that was enforced no longer is, because somebody released it.
	NamespaceLeft Event = "NamespaceLeft"
)

// Events lists all of them.
func Events() []Event { return []Event{GrantPending, GrantExpiring, EnforcementLost, NamespaceLeft} }

// DefaultMergeWindowSeconds is 2 minutes.
const DefaultMergeWindowSeconds = 120

// Notification is one endpoint.
type Notification struct {
	// Name of the endpoint, a DNS label; marks on grants and metrics carry it, and another name is another endpoint.
	Name string `json:"name"`
	// Type of the endpoint.
	Type NotificationType `json:"type"`
	// URLSecretRef holds the URL: https://host[:port]/path, and nothing else but surrounding space. It is a secret, because
	// who knows it can post.
	URLSecretRef *SecretRef `json:"urlSecretRef"`
	// SigningSecretRef holds the key or, while it is changed, several keys, one per line, each as "whsec_" and base64 of 24
	// to 64 bytes. Needed by SignedHTTP, refused elsewhere.
	SigningSecretRef *SecretRef `json:"signingSecretRef,omitempty"`
	// AuthoritiesSecretRef holds PEM certificates of the authorities that may sign for the endpoint. Omitted: those that the
	// manager's image trusts.
	AuthoritiesSecretRef *SecretRef `json:"authoritiesSecretRef,omitempty"`
	// Events that the endpoint is told of; at least one.
	Events []Event `json:"events"`
	// MergeWindowSeconds: of one event, one session's questions make at most one message in so many seconds. Between 0 and
	// 3600; 0 merges only what comes at once. Omitted: 120.
	MergeWindowSeconds *int32 `json:"mergeWindowSeconds,omitempty"`
	// AllowedNetworks are CIDRs beside the public Internet that the endpoint may be in, at most 16. Omitted: none, and an
	// address that is private, of the cluster, of the host or of the link is refused.
	AllowedNetworks []string `json:"allowedNetworks,omitempty"`
}

// MergeWindow in seconds, with the default.
func (n *Notification) MergeWindow() int32 {
	if n.MergeWindowSeconds == nil {
		return DefaultMergeWindowSeconds
	}
	return *n.MergeWindowSeconds
}

// SecretRef names a key of a Secret in the manager's own namespace, which is mounted into the manager.
type SecretRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Load reads a file strictly: a field that is unknown or there twice is an error that names it. An empty path gives the
// configuration that states nothing.
func Load(path string) (*ManagerConfig, error) {
	if path == "" {
		return &ManagerConfig{APIVersion: APIVersion, Kind: Kind}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the manager's configuration: %w", err)
	}
	config, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

// Parse is Load for the text of a file.
func Parse(text []byte) (*ManagerConfig, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("is no YAML: %w", err)
	}
	config := &ManagerConfig{}
	strict, err := json.UnmarshalStrict(asJSON, config)
	if err != nil {
		return nil, fmt.Errorf("is no ManagerConfig: %w", err)
	}
	if err := errors.Join(strict...); err != nil {
		return nil, err // each names its field with the whole path
	}
	if err := config.validate().ToAggregate(); err != nil {
		return nil, err
	}
	return config, nil
}
