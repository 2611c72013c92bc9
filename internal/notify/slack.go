package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

// slackText renders one headline and one block of preformatted text, which neither Slack nor what speaks like it reads as
// markup: there are no links, names, emphasis or pictures in it.
func slackText(m *message) ([]byte, error) {
	var b strings.Builder
	b.WriteString(headline(m))
	b.WriteString("\n```\n")
	for i := range m.items {
		if i > 0 {
			b.WriteString("\n")
		}
		if q := m.items[i].Question; q != nil {
			describe(&b, q)
		} else if a := m.items[i].Alarm; a != nil {
			row(&b, "about", a.About)
			row(&b, "what", a.Text)
			row(&b, "when", a.Time.UTC().Format(time.RFC3339))
		}
	}
	b.WriteString("```")
	body, err := json.Marshal(struct {
		Text        string `json:"text"`
		UnfurlLinks bool   `json:"unfurl_links"`
		UnfurlMedia bool   `json:"unfurl_media"`
	}{Text: b.String()})
	if err != nil {
		return nil, fmt.Errorf("render text: %w", err)
	}
	return body, nil
}

func headline(m *message) string {
	n := len(m.items)
	var text string
	switch m.event {
	case managerconfig.GrantPending:
		text = counted(n, "agent question waits", "agent questions wait") + " for an answer"
	case managerconfig.GrantExpiring:
		text = counted(n, "grant of an agent expires", "grants of agents expire") + " soon"
	case managerconfig.EnforcementLost:
		text = "The enforcement is not proven"
	case managerconfig.NamespaceLeft:
		text = counted(n, "namespace is", "namespaces are") + " enforced no more"
	}
	if m.subject != "" {
		text += ": " + plain(m.subject)
	}
	if m.more > 0 {
		text += fmt.Sprintf(" (%d more in the next message)", m.more)
	}
	return text
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func describe(b *strings.Builder, q *Question) {
	row(b, "what", q.What)
	rows(b, "effects", q.Effects)
	rows(b, "undo", q.Undo)
	rows(b, "why", q.Why)
	who := q.Requester
	if q.User != "" {
		who += " for " + q.User
	}
	row(b, "who", who)
	if q.Says != "" {
		row(b, "says", `"`+q.Says+`" (the agent's own words)`)
	}
	until := q.ExpirationTime.Format(time.RFC3339)
	if q.State == "Pending" {
		row(b, "needs", fmt.Sprintf("%s; has %s, until %s", strings.Join(q.Needs, " and "), q.Approvals, until))
	} else {
		row(b, "state", q.State+" and not used, until "+until)
	}
	row(b, "digest", q.Digest)
	row(b, "look", q.Commands.Show)
	row(b, "approve", q.Commands.Approve)
	row(b, "or", q.Commands.ApproveWithKubectl)
	row(b, "deny", q.Commands.Deny)
}

func rows(b *strings.Builder, name string, list []string) {
	for _, line := range list {
		row(b, name, line)
		name = ""
	}
}

// row leaves out what is empty. Runs of spaces become one: a line that is wrapped could look like two rows otherwise.
func row(b *strings.Builder, name, text string) {
	if text != "" {
		fmt.Fprintf(b, "%-8s %s\n", name, plain(strings.Join(strings.Fields(text), " ")))
	}
}

// plain takes from text what could end the block or be read as markup: the three characters that Slack wants escaped, and
// the backtick.
func plain(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'").Replace(text)
}
