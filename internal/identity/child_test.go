package identity_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
)

// opening is a pod that the agent of the parent wrote.
func opening(t *testing.T, parent *v1alpha1.AgentSession, change func(*v1alpha1.AgentPolicySpec)) *identity.Opening {
	pod := agentPod()
	pod.Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: "checkout/" + parent.Name}
	return &identity.Opening{
		Pod: pod, Root: v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "deploy-uid"},
		Snapshot: snapshotFor(t, 9, change), Sessions: []v1alpha1.AgentSession{*parent}, Now: now,
	}
}

func TestAChildHasWhatParentAndTemplateBothAllow(t *testing.T) {
	parent := changed("writer", func(s *v1alpha1.AgentSession) {
		s.Spec.ModelTier, s.Spec.InitiativeMode = v1alpha1.ModelTierSmall, v1alpha1.InitiativeModeStrict
		s.Spec.Adapter = &v1alpha1.Adapter{Name: "kubectl"}
		s.Spec.Authority.Stages = []v1alpha1.Stage{v1alpha1.StageExecute, v1alpha1.StagePublish}
		s.Spec.Authority.Kubernetes = []v1alpha1.KubernetesAuthority{{Groups: []string{"apps"}, Resources: []string{"*"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate}}}
		s.Spec.Authority.Budgets = &v1alpha1.Budgets{MaxMutations: ptr(int32(20)), MaxChildSessions: ptr(int32(3))}
	})
	got, refusal := opening(t, parent, func(s *v1alpha1.AgentPolicySpec) {
		template := &s.SessionTemplates[0]
		template.MaxAgeSeconds, template.Adapter = 600, &v1alpha1.Adapter{Name: "mcp"}
		template.Authority.Budgets = &v1alpha1.Budgets{MaxMutations: ptr(int32(10)), MaxChildSessions: ptr(int32(8))}
	}).Session()
	if refusal != nil {
		t.Fatal(refusal.Text)
	}
	want := &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "web-deplo-uidwr", Labels: map[string]string{v1alpha1.LabelTemplate: "agent"}},
		Spec: v1alpha1.AgentSessionSpec{
			Identity: v1alpha1.SessionIdentity{
				Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "agent",
				RootOwner: &v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "deploy-uid"},
			},
			UserName: "ana@acme.example", ModelTier: v1alpha1.ModelTierSmall, InitiativeMode: v1alpha1.InitiativeModeStrict,
			Parent: &v1alpha1.ParentSession{Name: "writer", UID: "uid-writer"},
			Authority: v1alpha1.Authority{
				Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal},
				Kubernetes: parent.Spec.Authority.Kubernetes,
				Budgets:    &v1alpha1.Budgets{MaxMutations: ptr(int32(10)), MaxChildSessions: ptr(int32(2))},
			},
			DeadlineTime: metav1.NewTime(now.Add(10 * time.Minute)),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("child (-want +got):\n%s", diff)
	}
}

// Proves G-3: whatever parent and template say, the child has strictly less than the parent.
func TestEveryDerivedChildIsStrictlyWithinItsParent(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		budgets := func(label string) *v1alpha1.Budgets {
			if !rapid.Bool().Draw(r, label+" has budgets") {
				return nil
			}
			number := func(what string) *int32 {
				if !rapid.Bool().Draw(r, label+" bounds "+what) {
					return nil
				}
				return ptr(rapid.Int32Range(1, 6).Draw(r, label+" "+what))
			}
			return &v1alpha1.Budgets{MaxMutations: number("mutations"), MaxChildSessions: number("children")}
		}
		stages := rapid.SliceOfNDistinct(rapid.SampledFrom([]v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StageExecute, v1alpha1.StagePublish}), 1, 3, rapid.ID[v1alpha1.Stage])
		parent := changed("writer", func(s *v1alpha1.AgentSession) {
			s.Spec.Authority.Stages, s.Spec.Authority.Budgets = stages.Draw(r, "parent's stages"), budgets("parent")
			s.Spec.DeadlineTime = metav1.NewTime(now.Add(time.Duration(rapid.IntRange(1, 200).Draw(r, "parent's minutes")) * time.Minute))
		})
		caps := &v1alpha1.Caps{MaxChildSessionsPerSession: ptr(rapid.Int32Range(0, 6).Draw(r, "cap")), MaxSessions: ptr(int32(9))}
		child, refusal := opening(t, parent, func(s *v1alpha1.AgentPolicySpec) {
			s.Caps, s.SessionTemplates[0].Authority.Stages, s.SessionTemplates[0].Authority.Budgets = caps, stages.Draw(r, "template's stages"), budgets("template")
		}).Session()
		if refusal != nil {
			if refusal.Cause != identity.CauseNothingInCommon && refusal.Cause != identity.CauseChildCap {
				r.Fatalf("refused: %+v", refusal)
			}
			return
		}
		limit := identity.ChildLimit(parent, caps)
		if found := identity.CheckChild(child, parent, limit); len(found) > 0 {
			r.Fatalf("beyond its parent: %v", found)
		}
		if own := identity.ChildLimit(child, caps); own >= limit {
			r.Fatalf("the child may have %d children, its parent %d", own, limit)
		}
	})
}

// Proves G-3, field by field.
func TestWhatAChildMustNotHaveBesideItsParent(t *testing.T) {
	parent := func() *v1alpha1.AgentSession {
		return changed("writer", func(s *v1alpha1.AgentSession) {
			s.Spec.ModelTier, s.Spec.InitiativeMode = v1alpha1.ModelTierSmall, v1alpha1.InitiativeModeStandard
			s.Spec.Authority.Kubernetes = []v1alpha1.KubernetesAuthority{{Groups: []string{"apps"}, Resources: []string{"deployments"}, Names: []string{"web-*"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbUpdate}}}
			s.Spec.Authority.Budgets = &v1alpha1.Budgets{MaxMutations: ptr(int32(20))}
		})
	}
	const limit = 4
	for field, change := range map[string]func(*v1alpha1.AgentSessionSpec){
		"":                    func(*v1alpha1.AgentSessionSpec) {},
		"spec.userName":       func(s *v1alpha1.AgentSessionSpec) { s.UserName = "ben@acme.example" },
		"spec.modelTier":      func(s *v1alpha1.AgentSessionSpec) { s.ModelTier = v1alpha1.ModelTierLarge },
		"spec.initiativeMode": func(s *v1alpha1.AgentSessionSpec) { s.InitiativeMode = v1alpha1.InitiativeModeExploratory },
		"spec.deadlineTime":   func(s *v1alpha1.AgentSessionSpec) { s.DeadlineTime = metav1.NewTime(now.Add(2 * time.Hour)) },
		"spec.authority.stages[1]": func(s *v1alpha1.AgentSessionSpec) {
			s.Authority.Stages = append(s.Authority.Stages, v1alpha1.StagePublish)
		},
		"spec.authority.capabilities[1]": func(s *v1alpha1.AgentSessionSpec) {
			s.Authority.Capabilities = append(s.Authority.Capabilities, v1alpha1.CapabilityPublishExternal)
		},
		"spec.authority.kubernetes":               func(s *v1alpha1.AgentSessionSpec) { s.Authority.Kubernetes = nil },
		"spec.authority.kubernetes[0]":            func(s *v1alpha1.AgentSessionSpec) { s.Authority.Kubernetes[0].Names = nil },
		"spec.authority.budgets.maxMutations":     func(s *v1alpha1.AgentSessionSpec) { s.Authority.Budgets.MaxMutations = nil },
		"spec.authority.budgets.maxChildSessions": func(s *v1alpha1.AgentSessionSpec) { s.Authority.Budgets.MaxChildSessions = ptr(int32(limit)) },
	} {
		t.Run(field, func(t *testing.T) {
			child := parent()
			child.Spec.Authority.Budgets.MaxChildSessions = ptr(int32(limit - 1))
			change(&child.Spec)
			var got string
			found := identity.CheckChild(child, parent(), limit)
			if len(found) > 0 {
				got = found[0].Field
			}
			if got != field || len(found) > 1 {
				t.Errorf("found %v, want %q", found, field)
			}
		})
	}
}

func TestTheNamesOfTwoParentsChildrenDiffer(t *testing.T) {
	root := v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "0a1b2c3d"}
	names := map[string]bool{identity.SessionName(root): true, identity.ChildName(root, "11111111"): true, identity.ChildName(root, "22222222"): true}
	if len(names) != 3 {
		t.Errorf("names %v, want three", names)
	}
}
