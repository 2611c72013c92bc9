// Package status builds the status of our kinds: conditions whose transition times survive, and the apply
// configuration of a computed status.
package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// maxMessage is the bound of metav1.Condition's message. The schema counts characters, of which bytes are an upper bound.
const maxMessage = 32768

// Conditions are the conditions of one status while it is computed. A type that is not set is absent afterwards, because
// server-side apply takes away what its owner no longer names.
type Conditions struct {
	observed   []metav1.Condition
	generation int64
	now        metav1.Time
	set        []metav1.Condition
}

// NewConditions begins the conditions that describe a generation. observed are those of the object as it is.
func NewConditions(observed []metav1.Condition, generation int64, now metav1.Time) *Conditions {
	return &Conditions{observed: observed, generation: generation, now: now}
}

// Set sets one condition; lastTransitionTime is kept while the status stays the same. A longer message than the schema
// allows is cut.
func (c *Conditions) Set(kind v1alpha1.ConditionType, value metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") // a cut may split a character
	}
	condition := metav1.Condition{
		Type: string(kind), Status: value, Reason: string(reason), Message: message,
		ObservedGeneration: c.generation, LastTransitionTime: c.now,
	}
	if before := meta.FindStatusCondition(c.observed, condition.Type); before != nil && before.Status == value {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	c.set = append(c.set, condition)
}

// List returns what was set, in that order.
func (c *Conditions) List() []metav1.Condition { return c.set }
