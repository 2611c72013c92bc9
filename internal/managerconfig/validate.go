package managerconfig

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxNotifications   = 16
	maxNetworks        = 16
	maxMergeWindow     = 3600
	omittedValue       = "is needed"
	otherAPIVersion    = "this manager reads " + APIVersion + " alone"
	networksAreNumbers = "must be a CIDR like 10.20.0.0/16, without bits behind its length"
)

func (c *ManagerConfig) validate() field.ErrorList {
	var found field.ErrorList
	if c.APIVersion != APIVersion {
		found = append(found, field.Invalid(field.NewPath("apiVersion"), c.APIVersion, otherAPIVersion))
	}
	if c.Kind != Kind {
		found = append(found, field.Invalid(field.NewPath("kind"), c.Kind, "must be "+Kind))
	}
	path := field.NewPath("notifications")
	if n := len(c.Notifications); n > maxNotifications {
		found = append(found, field.TooMany(path, n, maxNotifications))
	}
	names := sets.New[string]()
	for i := range c.Notifications {
		n := &c.Notifications[i]
		if names.Has(n.Name) {
			found = append(found, field.Duplicate(path.Index(i).Child("name"), n.Name))
		}
		names.Insert(n.Name)
		found = append(found, n.validate(path.Index(i))...)
	}
	return found
}

func (n *Notification) validate(path *field.Path) field.ErrorList {
	var found field.ErrorList
	for _, problem := range validation.IsDNS1123Label(n.Name) {
		found = append(found, field.Invalid(path.Child("name"), n.Name, problem))
	}
	signing := path.Child("signingSecretRef")
	switch {
	case n.Type != SignedHTTP && n.Type != SlackIncomingWebhook:
		found = append(found, field.NotSupported(path.Child("type"), n.Type, []NotificationType{SignedHTTP, SlackIncomingWebhook}))
	case n.Type == SignedHTTP && n.SigningSecretRef == nil:
		found = append(found, field.Required(signing, "whoever gets a message must be able to tell that it is the manager's"))
	case n.Type != SignedHTTP && n.SigningSecretRef != nil:
		found = append(found, field.Forbidden(signing, "only SignedHTTP signs"))
	}
	if n.URLSecretRef == nil {
		found = append(found, field.Required(path.Child("urlSecretRef"), omittedValue))
	}
	found = append(found, n.URLSecretRef.validate(path.Child("urlSecretRef"))...)
	found = append(found, n.SigningSecretRef.validate(signing)...)
	found = append(found, n.AuthoritiesSecretRef.validate(path.Child("authoritiesSecretRef"))...)
	found = append(found, n.validateEvents(path.Child("events"))...)
	if w := n.MergeWindow(); w < 0 || w > maxMergeWindow {
		found = append(found, field.Invalid(path.Child("mergeWindowSeconds"), w, fmt.Sprintf("must be between 0 and %d", maxMergeWindow)))
	}
	return append(found, n.validateNetworks(path.Child("allowedNetworks"))...)
}

func (n *Notification) validateEvents(path *field.Path) field.ErrorList {
	var found field.ErrorList
	if len(n.Events) == 0 {
		found = append(found, field.Required(path, omittedValue))
	}
	known, seen := sets.New(Events()...), sets.New[Event]()
	for i, event := range n.Events {
		switch {
		case !known.Has(event):
			found = append(found, field.NotSupported(path.Index(i), event, Events()))
		case seen.Has(event):
			found = append(found, field.Duplicate(path.Index(i), event))
		}
		seen.Insert(event)
	}
	return found
}

func (n *Notification) validateNetworks(path *field.Path) field.ErrorList {
	var found field.ErrorList
	if count := len(n.AllowedNetworks); count > maxNetworks {
		found = append(found, field.TooMany(path, count, maxNetworks))
	}
	for i, text := range n.AllowedNetworks {
		// A network that says more than its length means is somebody's mistake about how much it opens.
		if network, err := netip.ParsePrefix(text); err != nil || network != network.Masked() {
			found = append(found, field.Invalid(path.Index(i), text, networksAreNumbers))
		}
	}
	return found
}

func (r *SecretRef) validate(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var found field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(r.Name) {
		found = append(found, field.Invalid(path.Child("name"), r.Name, problem))
	}
	for _, problem := range validation.IsConfigMapKey(r.Key) {
		found = append(found, field.Invalid(path.Child("key"), r.Key, problem))
	}
	return found
}
