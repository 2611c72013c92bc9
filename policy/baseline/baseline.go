// Package baseline holds the embedded floor and default catalogue, one file per version in the rule language.
package baseline

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"stepbeyond.dev/stepbeyond/policy"
)

//go:embed *.yaml
var files embed.FS

// Latest is the newest version that this binary embeds.
const Latest = "v1"

// Versions that this binary embeds, oldest first.
func Versions() []string { return []string{Latest} }

// Load reads one embedded version as a policy whose rule names begin with "baseline". Its identity is the version and
// the digest of the file. The error names an unknown version.
func Load(version string) (policy.Policy, error) {
	source, err := Source(version)
	if err != nil {
		return policy.Policy{}, err
	}
	p, _, err := Parse(source)
	if err != nil {
		return policy.Policy{}, fmt.Errorf("baseline %s: %w", version, err)
	}
	return p, nil
}

// Source is the file of one embedded version. The error names an unknown version.
func Source(version string) ([]byte, error) {
	if !slices.Contains(Versions(), version) {
		return nil, fmt.Errorf("baselineVersion %q is not embedded in this binary; it has %s", version, strings.Join(Versions(), ", "))
	}
	source, err := files.ReadFile(version + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read baseline %s: %w", version, err)
	}
	return source, nil
}

// Parse reads a file of a version, which is embedded here or in another release, and gives the version that it says it is.
func Parse(source []byte) (p policy.Policy, version string, err error) {
	var doc document
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	decoder.KnownFields(true)
	if err := decoder.Decode(&doc); err != nil {
		return policy.Policy{}, "", fmt.Errorf("decode: %w", err)
	}
	if p, err = doc.policy(); err != nil {
		return policy.Policy{}, "", err
	}
	if doc.Version == "" {
		return policy.Policy{}, "", errors.New("version: is required")
	}
	digest := sha256.Sum256(source)
	p.ID = policy.PolicyID{Kind: policy.KindBaseline, Name: "baseline", UID: doc.Version + ":" + hex.EncodeToString(digest[:])}
	return p, doc.Version, nil
}

// document is the file format: the rule language with named sets of facts.
type document struct {
	Version   string              `yaml:"version"`
	Sets      map[string][]string `yaml:"sets"`
	Catalogue []entry             `yaml:"catalogue"`
	Rules     []rule              `yaml:"rules"`
}

type entry struct {
	Name       string   `yaml:"name"`
	Match      match    `yaml:"match"`
	When       string   `yaml:"when"`
	Present    []string `yaml:"present"`
	Absent     []string `yaml:"absent"`
	AbsentSets []string `yaml:"absentSets"`
	Effect     string   `yaml:"effect"`
	Detail     string   `yaml:"detail"`
	Recovery   string   `yaml:"recovery"`
}

type rule struct {
	Name     string `yaml:"name"`
	Class    string `yaml:"class"`
	Match    match  `yaml:"match"`
	When     string `yaml:"when"`
	Detail   string `yaml:"detail"`
	Recovery string `yaml:"recovery"`
}

type match struct {
	Kubernetes []selector `yaml:"kubernetes"`
	Tools      []string   `yaml:"tools"`
}

type selector struct {
	Groups    []string        `yaml:"groups"`
	Resources []string        `yaml:"resources"`
	Names     []string        `yaml:"names"`
	Verbs     []policy.Verb   `yaml:"verbs"`
	Origins   []policy.Origin `yaml:"origins"`
}

func (doc *document) policy() (policy.Policy, error) {
	var p policy.Policy
	for _, e := range doc.Catalogue {
		converted, err := e.convert(doc.Sets)
		if err != nil {
			return policy.Policy{}, fmt.Errorf("catalogue entry %q: %w", e.Name, err)
		}
		p.Catalogue = append(p.Catalogue, converted)
	}
	for _, r := range doc.Rules {
		class, ok := policy.ParseClass(r.Class)
		if !ok {
			return policy.Policy{}, fmt.Errorf("rule %q: unknown class %q", r.Name, r.Class)
		}
		p.Rules = append(p.Rules, policy.Rule{
			Name: r.Name, Class: class, Enforcement: policy.EnforcementEnforce, Match: r.Match.convert(), When: r.When,
			Detail: r.Detail, Recovery: r.Recovery,
		})
	}
	return p, nil
}

func (e *entry) convert(sets map[string][]string) (policy.CatalogueEntry, error) {
	converted := policy.CatalogueEntry{Name: e.Name, Match: e.Match.convert(), When: e.When, Detail: e.Detail, Recovery: e.Recovery}
	if converted.Effect = policy.Effect(e.Effect); converted.Effect != "" && converted.Effect != policy.EffectRead {
		return converted, fmt.Errorf("unknown effect %q", e.Effect)
	}
	absent := e.Absent
	for _, name := range e.AbsentSets {
		set, ok := sets[name]
		if !ok {
			return converted, fmt.Errorf("unknown set %q", name)
		}
		absent = append(slices.Clone(absent), set...)
	}
	var err error
	if converted.Present, err = facts(e.Present); err != nil {
		return converted, fmt.Errorf("present: %w", err)
	}
	if converted.Absent, err = facts(absent); err != nil {
		return converted, fmt.Errorf("absent: %w", err)
	}
	return converted, nil
}

func facts(names []string) ([]policy.Fact, error) {
	var list []policy.Fact
	for _, name := range names {
		fact, ok := policy.ParseFact(name)
		if !ok {
			return nil, fmt.Errorf("unknown fact %q", name)
		}
		list = append(list, fact)
	}
	return list, nil
}

func (m *match) convert() policy.Match {
	converted := policy.Match{Tools: m.Tools}
	for _, s := range m.Kubernetes {
		converted.Kubernetes = append(converted.Kubernetes, policy.KubernetesSelector(s))
	}
	return converted
}
