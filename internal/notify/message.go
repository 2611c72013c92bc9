package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

// Item is one thing that a message tells; exactly one of Question and Alarm is set.
type Item struct {
	Question *Question `json:"question,omitempty"`
	Alarm    *Alarm    `json:"alarm,omitempty"`
}

// Alarm is what people are told about the product itself.
type Alarm struct {
	// About is the object, as KIND/NAME.
	About string `json:"about"`
	// Text is one bounded line.
	Text string    `json:"text"`
	Time time.Time `json:"time"`
}

// message is what is sent at once: of one event and one group.
type message struct {
	// id is the same for the same items, so that a receiver can tell what it has got already.
	id    string
	event managerconfig.Event
	// subject is what all items belong to.
	subject string
	at      time.Time
	items   []Item
	// more items wait for the next message.
	more int
}

func newMessage(event managerconfig.Event, subject string, at time.Time, ids []string, items []Item, more int) *message {
	sum := sha256.New()
	for _, id := range ids {
		sum.Write([]byte(id + "\n"))
	}
	return &message{id: "msg_" + hex.EncodeToString(sum.Sum(nil)[:16]), event: event, subject: subject, at: at, items: items, more: more}
}

// format is how one type of endpoint is spoken to.
type format struct {
	contentType string
	// most items of one message; the rest waits for the next one.
	most   int
	render func(*message) ([]byte, error)
}

var formats = map[managerconfig.NotificationType]format{
	managerconfig.SignedHTTP:           {"application/cloudevents+json; charset=utf-8", 25, cloudEvent},
	managerconfig.SlackIncomingWebhook: {"application/json; charset=utf-8", 3, slackText},
}
