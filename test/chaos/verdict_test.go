package main

import (
	"strings"
	"testing"
)

func good() *measured {
	return &measured{
		Forbidden: counts{Sent: 10, Forbidden: 10}, Ask: counts{Sent: 10, Forbidden: 10}, Auto: counts{Sent: 10, Passed: 5, Refused: 5},
		Bystander: bystander{Leases: 100, Writes: 50, Reads: 50}, Recovered: true,
		Grants: grantCounts{Approved: 6, Meanwhile: 2, Kept: 4, PendingAnswered: 1},
	}
}

// Proves K-2, K-6, F-1, G-5.
func TestARunFailsOnEachKindOfBadCell(t *testing.T) {
	plain, exposed, destroying := &row{}, &row{exposed: "until it is back"}, &row{asksAgain: true}
	for _, tt := range []struct {
		name   string
		row    *row
		change func(*measured)
		want   string // empty for a good row
		column int    // of the cell that is marked; -1 for none
	}{
		{"nothing is wrong", plain, func(*measured) {}, "", -1},
		{"a bystander is denied", plain, func(m *measured) { m.Bystander.Denied = 1 }, "bystanders were denied 1 times", 3},
		{"a bystander fails for no known reason", plain, func(m *measured) { m.Bystander.Other = 1 }, "bystanders failed 1 times for no known reason", 3},
		{"a bystander gets no answer where the API server runs", plain, func(m *measured) {
			m.Bystander.Away = map[string]int{kindNoAnswer: 2}
		}, `bystanders failed 2 times with "no answer"`, 3},
		{"a bystander fails in a way that it does not without us", plain, func(m *measured) {
			m.Bystander.Away, m.Bare = map[string]int{kindStorage: 2}, &bystander{Away: map[string]int{kindNoAnswer: 2}}
		}, `bystanders failed 2 times with "storage"`, 3},
		{"a bystander fails as it does without us", plain, func(m *measured) {
			m.Bystander.Away, m.Bare = map[string]int{kindNoAnswer: 2}, &bystander{Away: map[string]int{kindNoAnswer: 1}}
		}, "", -1},
		{"no Lease was renewed", plain, func(m *measured) { m.Bystander.Leases = 0 }, "bystanders sent 0 renewals", -1},
		{"FORBIDDEN passes once", plain, func(m *measured) { m.Forbidden.Passed = 1 }, "FORBIDDEN passed 1 times", 0},
		{"no FORBIDDEN was sent", plain, func(m *measured) { m.Forbidden = counts{} }, "no FORBIDDEN was answered", 0},
		{"no FORBIDDEN was answered", plain, func(m *measured) { m.Forbidden = counts{Sent: 3, Away: 3} }, "no FORBIDDEN was answered", 0},
		{"an ASK passes without its grant", plain, func(m *measured) { m.Ask.Passed = 1 }, "ASK passed 1 times without a grant", 1},
		{"an ASK passes where nothing can refuse", exposed, func(m *measured) { m.Ask.Passed = 1 }, "", -1},
		{"an ASK passes after the repair", exposed, func(m *measured) { m.Ask.Passed, m.PassedGuarded = 2, 1 }, "ASK passed 1 times without a grant after", 1},
		{"no ASK was answered", plain, func(m *measured) { m.Ask = counts{Sent: 3, Away: 3} }, "no ASK was answered", 1},
		{"no AUTO was sent", plain, func(m *measured) { m.Auto = counts{} }, "no AUTO was sent", 2},
		{"an AUTO passes without the manager", plain, func(m *measured) { m.Auto.Unstamped = 1 }, "AUTO passed 1 times without the manager", 2},
		{"an AUTO passes where nobody asks the manager", exposed, func(m *measured) { m.Auto.Unstamped = 1 }, "", -1},
		{"it does not recover", plain, func(m *measured) { m.Recovered = false }, "it did not recover", 5},
		{"a grant is lost", plain, func(m *measured) { m.Grants.Kept, m.Grants.Lost = 3, 1 }, "1 grants were lost", 6},
		{"a grant is used twice", plain, func(m *measured) { m.Grants.Kept, m.Grants.Doubled = 3, 1 }, "1 grants had more than one effect", 6},
		{"an approval is lost", plain, func(m *measured) { m.Grants.Kept, m.Grants.AskedAgain = 3, 1 }, "1 approvals were lost", 6},
		{"an approval is destroyed by the fault", destroying, func(m *measured) { m.Grants.Kept, m.Grants.AskedAgain = 3, 1 }, "", -1},
		{"a grant is not accounted for", plain, func(m *measured) { m.Grants.Kept = 3 }, "6 of 7 grants are accounted for", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := good()
			tt.change(m)
			got := strings.Join(verdict(tt.row, m), "; ")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
			for i, cell := range cells(tt.row, m) {
				if marked := strings.Contains(cell, failed); marked != (i == tt.column) {
					t.Errorf("cell %s: %q", columns[i], cell)
				}
			}
		})
	}
}
