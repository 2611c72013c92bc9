package policy_test

import (
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves K-10: a list shows what a rule closes by its name; a write without a name is of no name yet.
func TestAReadWithoutANameTouchesEveryName(t *testing.T) {
	closed := func(names ...string) policy.Policy {
		return policy.Policy{Rules: []policy.Rule{{
			Name: "closed", Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce,
			Match: policy.Match{Kubernetes: []policy.KubernetesSelector{{Groups: []string{""}, Resources: []string{"configmaps"}, Names: names}}},
		}}}
	}
	for name, tt := range map[string]struct {
		names []string
		verb  policy.Verb
		asked string
		want  policy.Class
	}{
		"a list and a prefix":         {[]string{"prod-*"}, policy.VerbRead, "", policy.ClassForbidden},
		"a list and a name":           {[]string{"prod"}, policy.VerbRead, "", policy.ClassForbidden},
		"a list and any name":         {[]string{"*"}, policy.VerbRead, "", policy.ClassForbidden},
		"a get of the prefix":         {[]string{"prod-*"}, policy.VerbRead, "prod-x", policy.ClassForbidden},
		"a get of another":            {[]string{"prod-*"}, policy.VerbRead, "web", policy.ClassAuto},
		"a create without a name":     {[]string{"prod-*"}, policy.VerbUpdate, "", policy.ClassAuto},
		"a deletion without a name":   {[]string{"prod-*"}, policy.VerbDelete, "", policy.ClassAuto},
		"a deletion and any name":     {[]string{"*"}, policy.VerbDelete, "", policy.ClassForbidden},
		"a deletion of what is named": {[]string{"prod"}, policy.VerbDelete, "prod", policy.ClassForbidden},
	} {
		op := update(harmless())
		op.Verb, op.Target.Name = tt.verb, tt.asked
		if tt.verb == policy.VerbRead {
			op.ReadBy = policy.Parsed
		}
		if got := compile(t, under(closed(tt.names...))).Decide(op, session(), now).Class; got != tt.want {
			t.Errorf("%s: class %s, want %s", name, got, tt.want)
		}
	}
}

// Proves C-4: an entry about some names vouches for no list, and what it says against them counts for a list too.
func TestACatalogueEntryForNamesVouchesForNoList(t *testing.T) {
	entry := policy.CatalogueEntry{
		Name: "public", Effect: policy.EffectRead,
		Match: policy.Match{Kubernetes: []policy.KubernetesSelector{{Names: []string{"public-*"}, Verbs: []policy.Verb{policy.VerbRead}}}},
	}
	harmful := entry
	harmful.Effect, harmful.Present = "", []policy.Fact{policy.Credentials}
	for name, tt := range map[string]struct {
		entry policy.CatalogueEntry
		asked string
		by    policy.Provenance
		want  policy.Class
	}{
		"what it names":           {entry, "public-x", 0, policy.ClassAuto},
		"a list":                  {entry, "", 0, policy.ClassAsk},
		"a harm of what it names": {harmful, "public-x", policy.Parsed, policy.ClassAsk},
		"a harm in a list":        {harmful, "", policy.Parsed, policy.ClassAsk},
		"no harm of another":      {harmful, "web", policy.Parsed, policy.ClassAuto},
	} {
		op := update(policy.Facts{})
		op.Verb, op.Target.Name, op.ReadBy = policy.VerbRead, tt.asked, tt.by
		if got := compile(t, under(policy.Policy{Catalogue: []policy.CatalogueEntry{tt.entry}})).Decide(op, session(), now).Class; got != tt.want {
			t.Errorf("%s: class %s, want %s", name, got, tt.want)
		}
	}
}
