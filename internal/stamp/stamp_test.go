package stamp_test

import (
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/internal/stamp"
)

func TestVerify(t *testing.T) {
	ours := stamp.Stamper{Key: []byte(strings.Repeat("k", 32))}
	web := stamp.Subject{Group: "apps", Resource: "deployments", Namespace: "checkout", Name: "web"}
	job := stamp.Subject{Group: "batch", Resource: "jobs", Namespace: "checkout", GenerateName: "smoke-"}
	named := func(s stamp.Subject, name string) stamp.Subject { s.Name = name; return s }
	const session = "checkout/fix-latency-9c1f0"

	for name, test := range map[string]struct {
		stamp   string
		subject stamp.Subject
		want    bool
	}{
		"a stamp verifies on its own object":                            {ours.CreatedBy(session, web), web, true},
		"a copy under another name does not verify":                     {ours.CreatedBy(session, web), named(web, "api"), false},
		"a copy in another namespace does not verify":                   {ours.CreatedBy(session, web), stamp.Subject{Group: "apps", Resource: "deployments", Namespace: "payments", Name: "web"}, false},
		"a copy on another kind does not verify":                        {ours.CreatedBy(session, web), stamp.Subject{Group: "apps", Resource: "statefulsets", Namespace: "checkout", Name: "web"}, false},
		"a stamp of another installation does not verify":               {stamp.Stamper{Key: []byte(strings.Repeat("x", 32))}.CreatedBy(session, web), web, false},
		"a stamp whose session was changed does not verify":             {strings.Replace(ours.CreatedBy(session, web), "fix", "own", 1), web, false},
		"a generated name verifies by its prefix":                       {ours.CreatedBy(session, job), named(job, "smoke-x7k2p"), true},
		"a name that does not begin with the prefix does not verify":    {ours.CreatedBy(session, job), named(job, "other"), false},
		"a prefix's stamp does not verify where the prefix was removed": {ours.CreatedBy(session, job), stamp.Subject{Group: "batch", Resource: "jobs", Namespace: "checkout", Name: "smoke-x7k2p"}, false},
		"no stamp does not verify":                                      {"", web, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ours.Verify(test.stamp, test.subject)
			if ok != test.want {
				t.Errorf("verified = %v, want %v", ok, test.want)
			}
			if ok && got != session {
				t.Errorf("session = %q, want %q", got, session)
			}
		})
	}
}
