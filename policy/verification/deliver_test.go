package verification_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy/verification"
)

// Proves V-3 and V-4: a delivered claim has exactly one record, one without is removed, one with half a record is narrowed.
func TestClaimsAreDeliveredAsFarAsTheyAreSupported(t *testing.T) {
	claims := []verification.Claim{
		{ID: "whole", Text: "The rollout is done.", Scope: []string{"web"}},
		{ID: "part", Text: "All services answer.", Scope: []string{"web", "api"}},
		{ID: "silent", Text: "Latency is lower.", Scope: []string{"web"}},
		{ID: "failed", Text: "Tests pass.", Scope: []string{"web", "api"}},
		{ID: "twice", Text: "Logs are clean.", Scope: []string{"web"}},
		{ID: "blocked", Text: "It survives a node loss.", Scope: []string{"web"}},
	}
	records := []verification.Record{
		{ClaimID: "twice", Checks: []verification.Check{passed("web")}},
		{ClaimID: "whole", Checks: []verification.Check{passed("web")}},
		{ClaimID: "dropped from the draft", Checks: []verification.Check{passed("web")}},
		{ClaimID: "part", Checks: []verification.Check{passed("web")}},
		{ClaimID: "failed", Checks: []verification.Check{failed("api")}},
		{ClaimID: "twice", Checks: []verification.Check{passed("web")}},
		{ClaimID: "blocked", EnvironmentBlockers: []string{"one node"}},
	}
	got, problems := verification.Deliver(claims, records)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := verification.Delivery{
		Claims: []verification.Delivered{
			{ClaimID: "whole", Text: "The rollout is done.", Assessment: verification.Assessment{Status: "verified", VerifiedScope: []string{"web"}}},
			{ClaimID: "part", Text: "All services answer.", Assessment: verification.Assessment{
				Status: "partially_verified", VerifiedScope: []string{"web"}, Unverified: []verification.Omission{{Element: "api", Reason: "NoCheck"}},
			}},
		},
		Removed: []verification.Removed{
			{ClaimID: "silent", Reason: "NoRecord"},
			{ClaimID: "failed", Reason: "CheckFailed", Unverified: []verification.Omission{{Element: "web", Reason: "NoCheck"}, {Element: "api", Reason: "CheckFailed"}}},
			{ClaimID: "twice", Reason: "SeveralRecords"},
			{ClaimID: "blocked", Reason: "Blocked", Unverified: []verification.Omission{{Element: "web", Reason: "Blocked"}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

// Proves V-3: the sentence of a narrowed claim says what was not checked.
func TestANarrowedClaimSaysWhatItDoesNotCover(t *testing.T) {
	tests := []struct {
		name   string
		record verification.Record
		want   string
	}{
		{"verified", verification.Record{Checks: []verification.Check{passed("web", "api")}}, "The rollout is done. [verified]"},
		{"in part", verification.Record{Checks: []verification.Check{passed("web"), failed("api")}, UncheckedElements: []string{"db"}},
			"The rollout is done. [partially_verified; checked: web; not verified: api (CheckFailed), db (Unchecked)]"},
		{"indirectly", verification.Record{Checks: []verification.Check{indirect("web", "api")}},
			"The rollout is done. [partially_verified; checked: nothing; not verified: web (CheckedIndirectly), api (CheckedIndirectly)]"},
		{"blocked", verification.Record{Checks: []verification.Check{passed("web", "api")}, EnvironmentBlockers: []string{"no load", "one node"}},
			"The rollout is done. [partially_verified; checked: web, api; blocked by: no load, one node]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.record.ClaimID = claim.ID
			got, problems := verification.Deliver([]verification.Claim{claim}, []verification.Record{tt.record})
			if len(problems) > 0 || len(got.Claims) != 1 {
				t.Fatalf("delivery = %+v, %v", got, problems)
			}
			if diff := cmp.Diff(tt.want, got.Claims[0].Sentence()); diff != "" {
				t.Errorf("sentence (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves V-1: a part that is absent or outside of the vocabulary is rejected with its path, and nothing is delivered.
func TestAnIncompleteRecordIsRejected(t *testing.T) {
	claims := []verification.Claim{claim, {ID: "c1", Text: " "}, {Text: "t", Scope: []string{""}}}
	records := []verification.Record{
		{ClaimID: "c1", Checks: []verification.Check{passed("web", "api")}},
		{
			Checks: []verification.Check{
				{Method: "direct", Result: "Denied", Executed: "", Evidence: []string{""}, Scope: []string{" "}}, {Executed: "make"},
			},
			UncheckedElements: []string{""}, EnvironmentBlockers: []string{"\t"},
		},
	}
	got, problems := verification.Deliver(claims, records)
	want := []string{
		"claims[1].id: is that of an earlier claim", "claims[1].text: is absent or blank", "claims[1].scope: is absent: a claim names at least one element",
		"claims[2].id: is absent or blank", "claims[2].scope[0]: is absent or blank",
		"records[1].claimID: is absent or blank",
		"records[1].checks[0].method: must be one of Direct, Indirect", "records[1].checks[0].result: must be one of Passed, Failed, NotRun",
		"records[1].checks[0].executed: is absent or blank", "records[1].checks[0].evidence[0]: is absent or blank", "records[1].checks[0].scope[0]: is absent or blank",
		"records[1].checks[1].method: is absent", "records[1].checks[1].result: is absent",
		"records[1].uncheckedElements[0]: is absent or blank", "records[1].environmentBlockers[0]: is absent or blank",
	}
	var errors []string
	for _, p := range problems {
		errors = append(errors, p.Error())
	}
	if diff := cmp.Diff(want, errors); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(verification.Delivery{}, got); diff != "" {
		t.Errorf("delivered with problems:\n%s", diff)
	}
}

// draft is what is to be delivered.
type draft struct {
	claims  []verification.Claim
	records []verification.Record
	count   map[string]int // records by claim
}

func drawDraft(t *rapid.T) draft {
	d := draft{count: map[string]int{}}
	for i := range rapid.IntRange(0, 5).Draw(t, "claims") {
		id := fmt.Sprintf("c%d", i)
		d.claims = append(d.claims, drawClaim(t, id))
		d.count[id] = rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2}).Draw(t, "records")
		for range d.count[id] {
			d.records = append(d.records, drawRecord(t, id))
		}
	}
	return d
}

// Proves V-4: every claim ends in exactly one list; what is delivered has exactly one record and a status above unverified.
func TestEveryClaimIsDeliveredOrRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draft := drawDraft(t)
		got, problems := verification.Deliver(draft.claims, draft.records)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		answers := map[string]int{}
		for i := range got.Claims {
			c := &got.Claims[i]
			answers[c.ClaimID]++
			if draft.count[c.ClaimID] != 1 || c.Status == verification.StatusUnverified {
				t.Fatalf("%+v is delivered with %d records", c, draft.count[c.ClaimID])
			}
			if c.Narrowed() == (c.Status == verification.StatusVerified) {
				t.Fatalf("%+v: narrowed = %v", c, c.Narrowed())
			}
		}
		for _, r := range got.Removed {
			answers[r.ClaimID]++
			if r.Reason == "" {
				t.Fatalf("%+v is removed without a reason", r)
			}
		}
		for id := range draft.count {
			if answers[id] != 1 {
				t.Fatalf("%s has %d answers", id, answers[id])
			}
		}
	})
}

func TestDraftsAreDeliveredInPartAndRemoved(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		draft := drawDraft(t)
		got, problems := verification.Deliver(draft.claims, draft.records)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		var labels []string
		for i := range got.Claims {
			labels = append(labels, "claim delivered", fmt.Sprintf("narrowed %t", got.Claims[i].Narrowed()))
		}
		for _, r := range got.Removed {
			labels = append(labels, "claim removed", "because "+string(r.Reason))
		}
		return labels
	})
	shares.Check(t, labels, 2000, "claim delivered", "claim removed", "narrowed true", "narrowed false", "because NoRecord", "because SeveralRecords")
}
