package notify

import (
	"encoding/json"
	"fmt"
	"time"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

// types of CloudEvents; a change that a receiver could stumble over gets another last part.
var types = map[managerconfig.Event]string{
	managerconfig.GrantPending:    "dev.stepbeyond.grant.pending.v1alpha1",
	managerconfig.GrantExpiring:   "dev.stepbeyond.grant.expiring.v1alpha1",
	managerconfig.EnforcementLost: "dev.stepbeyond.enforcement.lost.v1alpha1",
	managerconfig.NamespaceLeft:   "dev.stepbeyond.namespace.left.v1alpha1",
}

// source of all events. It names the API and not the cluster, which has no name of its own: an endpoint per cluster tells
// clusters apart.
const source = "/apis/stepbeyond.dev/v1alpha1"

// cloudEvent renders CloudEvents 1.0 in structured JSON.
func cloudEvent(m *message) ([]byte, error) {
	type data struct {
		Items []Item `json:"items"`
		// More questions of the session come with the next message.
		More int `json:"more,omitempty"`
	}
	body, err := json.Marshal(struct {
		SpecVersion     string `json:"specversion"`
		ID              string `json:"id"`
		Source          string `json:"source"`
		Type            string `json:"type"`
		Subject         string `json:"subject,omitempty"`
		Time            string `json:"time"`
		DataContentType string `json:"datacontenttype"`
		Data            data   `json:"data"`
	}{"1.0", m.id, source, types[m.event], m.subject, m.at.UTC().Format(time.RFC3339), "application/json", data{m.items, m.more}})
	if err != nil {
		return nil, fmt.Errorf("render CloudEvent: %w", err)
	}
	return body, nil
}
