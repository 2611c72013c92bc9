package verification

import (
	"fmt"
	"strings"
)

// Delivery is what may be said (requirement V-4). Artifacts are no part of it: a missing or failed check takes away
// words, never work (requirement V-3).
type Delivery struct {
	// Claims that are supported, in the order in which they were stated.
	Claims []Delivered
	// Removed are the claims of which nothing remains, in that order.
	Removed []Removed
}

// Delivered is a claim with what it may be taken to cover.
type Delivered struct {
	ClaimID string
	Text    string
	Assessment
}

// Narrowed tells whether the claim covers less than it states.
func (d *Delivered) Narrowed() bool { return d.Status != StatusVerified }

// Sentence is the claim as it may be said: with its status and, unless all was verified, with what was and what was not
// checked, so that a pass never seems to cover the rest.
func (d *Delivered) Sentence() string {
	if !d.Narrowed() {
		return fmt.Sprintf("%s [%s]", d.Text, d.Status)
	}
	checked := "nothing"
	if len(d.VerifiedScope) > 0 {
		checked = strings.Join(d.VerifiedScope, ", ")
	}
	text := fmt.Sprintf("%s [%s; checked: %s", d.Text, d.Status, checked)
	if len(d.Unverified) > 0 {
		var rest []string
		for _, o := range d.Unverified {
			rest = append(rest, fmt.Sprintf("%s (%s)", o.Element, o.Reason))
		}
		text += "; not verified: " + strings.Join(rest, ", ")
	}
	if len(d.EnvironmentBlockers) > 0 {
		text += "; blocked by: " + strings.Join(d.EnvironmentBlockers, ", ")
	}
	return text + "]"
}

// Removed is a claim that may not be made.
type Removed struct {
	ClaimID string
	// Reason is ReasonNoRecord, ReasonSeveralRecords, ReasonCheckFailed when a check failed on any element, or that of the
	// first element.
	Reason Reason
	// Unverified lists the elements of the claim and why none is supported; empty without exactly one record.
	Unverified []Omission
}

// Deliver keeps the claims that their records support, narrows those that they support in part, and removes the others,
// each with its reason (requirements V-3, V-4). A claim needs exactly one record. A record whose claim is not among the
// claims is not looked at: a claim may be dropped from a draft. With any problem in the input nothing is delivered.
func Deliver(claims []Claim, records []Record) (Delivery, []Problem) {
	var v validation
	v.claims(claims)
	v.records(records)
	if len(v.problems) > 0 {
		return Delivery{}, v.problems
	}
	byClaim := map[string][]*Record{}
	for i := range records {
		byClaim[records[i].ClaimID] = append(byClaim[records[i].ClaimID], &records[i])
	}
	var d Delivery
	for i := range claims {
		d.add(&claims[i], byClaim[claims[i].ID])
	}
	return d, nil
}

func (d *Delivery) add(claim *Claim, records []*Record) {
	switch len(records) {
	case 0:
		d.Removed = append(d.Removed, Removed{ClaimID: claim.ID, Reason: ReasonNoRecord})
		return
	case 1:
	default:
		d.Removed = append(d.Removed, Removed{ClaimID: claim.ID, Reason: ReasonSeveralRecords})
		return
	}
	assessment := Assess(claim, records[0])
	if assessment.Status == StatusUnverified {
		d.Removed = append(d.Removed, Removed{ClaimID: claim.ID, Reason: mainReason(assessment.Unverified), Unverified: assessment.Unverified})
		return
	}
	d.Claims = append(d.Claims, Delivered{ClaimID: claim.ID, Text: claim.Text, Assessment: assessment})
}

func mainReason(omissions []Omission) Reason {
	for _, o := range omissions {
		if o.Reason == ReasonCheckFailed {
			return ReasonCheckFailed
		}
	}
	return omissions[0].Reason
}
