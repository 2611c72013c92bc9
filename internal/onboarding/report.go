package onboarding

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Bounds of a report, as its schema has them.
const (
	maxListed         = 64
	maxListedFindings = 8
)

// merged is the report with what was counted since. audited tells which namespaces stay in it. It does not change the old
// one.
func merged(old *v1alpha1.OnboardingReport, counted Counted, audited func(namespace string) bool, now metav1.Time) *v1alpha1.OnboardingReport {
	report := &v1alpha1.OnboardingReport{CountedSinceTime: now, LastCountedTime: now}
	var unlisted v1alpha1.OnboardingCounts
	accounts := Counted{}
	if old != nil {
		report.CountedSinceTime = old.CountedSinceTime
		if len(counted) == 0 {
			report.LastCountedTime = old.LastCountedTime
		}
		if old.Unlisted != nil {
			unlisted = *old.Unlisted
		}
		for i := range old.ServiceAccounts {
			listed := &old.ServiceAccounts[i]
			accounts.of(Account{Namespace: listed.Namespace, Name: listed.Name}).join(tallyOf(listed))
		}
	}
	for account, more := range counted {
		if account.Name == "" {
			add(&unlisted, &more.counts)
			continue
		}
		accounts.of(account).join(more)
	}
	for account, t := range accounts {
		if audited(account.Namespace) {
			report.ServiceAccounts = append(report.ServiceAccounts, listedOf(account, t))
		}
	}
	cut(report, &unlisted)
	return report
}

// cut keeps what a reader looks for first and sums the rest.
func cut(report *v1alpha1.OnboardingReport, unlisted *v1alpha1.OnboardingCounts) {
	stopped := func(s *v1alpha1.OnboardingServiceAccount) int64 { return s.Counts.WouldAsk + s.Counts.WouldRefuse }
	slices.SortFunc(report.ServiceAccounts, func(a, b v1alpha1.OnboardingServiceAccount) int {
		return cmp.Or(cmp.Compare(stopped(&b), stopped(&a)), cmp.Compare(b.Counts.WouldAllow, a.Counts.WouldAllow),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range report.ServiceAccounts {
		if i >= maxListed {
			add(unlisted, &report.ServiceAccounts[i].Counts)
			continue
		}
		add(&report.Total, &report.ServiceAccounts[i].Counts)
	}
	report.ServiceAccounts = slices.Clip(report.ServiceAccounts[:min(maxListed, len(report.ServiceAccounts))])
	if *unlisted != (v1alpha1.OnboardingCounts{}) {
		report.Unlisted = unlisted
		add(&report.Total, unlisted)
	}
}

func tallyOf(listed *v1alpha1.OnboardingServiceAccount) *tally {
	t := &tally{counts: listed.Counts, findings: map[Finding]int64{}}
	for _, f := range listed.Findings {
		t.findings[Finding{Operation: f.Operation, Reason: f.Reason, Because: f.Because, Rule: f.Rule}] = f.Count
	}
	return t
}

func listedOf(account Account, t *tally) v1alpha1.OnboardingServiceAccount {
	findings := make([]v1alpha1.OnboardingFinding, 0, len(t.findings))
	for f, count := range t.findings {
		findings = append(findings, v1alpha1.OnboardingFinding{
			Operation: f.Operation, Reason: f.Reason, Because: f.Because, Rule: f.Rule, Count: count,
		})
	}
	slices.SortFunc(findings, func(a, b v1alpha1.OnboardingFinding) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Because, b.Because), cmp.Compare(a.Rule, b.Rule))
	})
	return v1alpha1.OnboardingServiceAccount{
		Namespace: account.Namespace, Name: account.Name, Counts: t.counts,
		Findings: slices.Clip(findings[:min(maxListedFindings, len(findings))]),
	}
}
