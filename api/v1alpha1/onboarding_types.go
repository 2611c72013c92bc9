package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OnboardingReport says what would have been decided in namespaces under a profile whose floor is audited. Each replica
// of the manager adds its own reviews, at most every 30 s; those that it has not added yet when it is killed are lost, and
// a write whose answer is lost counts twice. A review is counted once for each time the API server asks: a request that it
// tries again counts again.
type OnboardingReport struct {
	// countedSinceTime is when the first review was added.
	// +required
	CountedSinceTime metav1.Time `json:"countedSinceTime,omitzero"`

	// lastCountedTime is when reviews were added last.
	// +required
	LastCountedTime metav1.Time `json:"lastCountedTime,omitzero"`

	// total of what serviceAccounts and unlisted count.
	// +required
	Total OnboardingCounts `json:"total,omitzero"`

	// serviceAccounts are at most 64: those of which most reviews would have been refused or asked about, first. One
	// goes when its namespace is audited no more. One that comes back after others took its place begins anew.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ServiceAccounts []OnboardingServiceAccount `json:"serviceAccounts,omitempty"`

	// unlisted sums what is not in serviceAccounts, also of namespaces that are audited no more. Omitted: nothing.
	// +optional
	Unlisted *OnboardingCounts `json:"unlisted,omitempty"`
}

// OnboardingCounts counts reviews by what would have come of them under a profile whose floor is enforced, and those that
// were decided by class.
type OnboardingCounts struct {
	// wouldAllow counts reviews that would have been allowed.
	// +required
	// +kubebuilder:validation:Minimum=0
	WouldAllow int64 `json:"wouldAllow"`

	// wouldAsk counts reviews that would have waited for a person's approval.
	// +required
	// +kubebuilder:validation:Minimum=0
	WouldAsk int64 `json:"wouldAsk"`

	// wouldRefuse counts reviews that would have been refused without a question.
	// +required
	// +kubebuilder:validation:Minimum=0
	WouldRefuse int64 `json:"wouldRefuse"`

	// undecided counts reviews that could not be decided. Under a profile whose floor is enforced they would have been
	// refused; here they say something about the manager and nothing about the agent.
	// +required
	// +kubebuilder:validation:Minimum=0
	Undecided int64 `json:"undecided"`

	// auto counts decided reviews of class AUTO.
	// +required
	// +kubebuilder:validation:Minimum=0
	Auto int64 `json:"auto"`

	// autoWithDisclosure counts decided reviews of class AUTO_WITH_DISCLOSURE.
	// +required
	// +kubebuilder:validation:Minimum=0
	AutoWithDisclosure int64 `json:"autoWithDisclosure"`

	// ask counts decided reviews of class ASK.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ask int64 `json:"ask"`

	// forbidden counts decided reviews of class FORBIDDEN.
	// +required
	// +kubebuilder:validation:Minimum=0
	Forbidden int64 `json:"forbidden"`
}

// OnboardingServiceAccount counts the reviews of one ServiceAccount.
type OnboardingServiceAccount struct {
	// namespace of the ServiceAccount.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name of the ServiceAccount.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// counts of its reviews.
	// +required
	Counts OnboardingCounts `json:"counts,omitzero"`

	// findings say what would not have been allowed and why: the 8 most frequent, most frequent first. One that comes
	// back after others took its place begins anew.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Findings []OnboardingFinding `json:"findings,omitempty"`
}

// OnboardingFinding is one kind of request that would not have been allowed. It never names an object.
type OnboardingFinding struct {
	// operation is the verb and the resource, as in "delete deployments.apps".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Operation string `json:"operation"`

	// reason of the answer, of the vocabulary of docs/reasons.md.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// because is what decided the class: a fact, or Rule, Uncatalogued or StageNotGranted. Omitted: the answer does not
	// depend on the class.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Because string `json:"because,omitempty"`

	// rule that decided, as policy/rule. Omitted: none did.
	// +optional
	// +kubebuilder:validation:MaxLength=384
	Rule string `json:"rule,omitempty"`

	// count of the reviews.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int64 `json:"count"`
}
