package grant

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves G-7: the cap of a session counts its family, that of a namespace everybody; nothing but a cap refuses.
func TestACapLeavesRoomBelowItAlone(t *testing.T) {
	caps := func(session, namespace *int32) policy.Approvals {
		return policy.Approvals{MaxPendingPerSession: session, MaxPendingPerNamespace: namespace}
	}
	for _, tt := range []struct {
		name string
		caps policy.Approvals
		own  int
		beside
		want *policy.GrantRef
	}{
		{"no caps", caps(nil, nil), 1000, beside{1000, 1000}, nil},
		{"below both", caps(new(int32(3)), new(int32(7))), 1, beside{1, 4}, nil},
		{"the session's cap", caps(new(int32(3)), new(int32(70))), 3, beside{0, 0}, &policy.GrantRef{Pending: 3, Cap: 3}},
		{"the session's cap, with its family", caps(new(int32(3)), new(int32(70))), 1, beside{2, 0}, &policy.GrantRef{Pending: 3, Cap: 3}},
		{"strangers do not count against the session", caps(new(int32(3)), new(int32(70))), 1, beside{1, 60}, nil},
		{"the namespace's cap", caps(new(int32(3)), new(int32(7))), 1, beside{1, 5}, &policy.GrantRef{Pending: 7, Cap: 7, OfNamespace: true}},
		{"the namespace's cap without one of the session", caps(nil, new(int32(7))), 7, beside{0, 0}, &policy.GrantRef{Pending: 7, Cap: 7, OfNamespace: true}},
		{"both: the nearer one is named", caps(new(int32(2)), new(int32(7))), 2, beside{0, 5}, &policy.GrantRef{Pending: 2, Cap: 2}},
		{"nothing may be asked in the namespace", caps(new(int32(2)), new(int32(0))), 0, beside{0, 0}, &policy.GrantRef{Cap: 0, OfNamespace: true}},
		{"more than the cap, which was lowered", caps(nil, new(int32(1))), 2, beside{0, 1}, &policy.GrantRef{Pending: 3, Cap: 1, OfNamespace: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.beside.full(&tt.caps, tt.own)); diff != "" {
				t.Errorf("full (-want +got):\n%s", diff)
			}
		})
	}
}
