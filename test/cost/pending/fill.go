package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

const (
	namespaces = 100
	writers    = 16
	// prefix of every grant's name, as the manager names them.
	prefix = "pg-"
)

// fill makes the grants with the status that the manager writes.
func fill(ctx context.Context, c client.Client, grants int) error {
	for i := range namespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}}); err != nil {
			return fmt.Errorf("create namespace: %w", err)
		}
	}
	errs := make([]error, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := w; i < grants && errs[w] == nil; i += writers {
				errs[w] = create(ctx, c, question(i))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func create(ctx context.Context, c client.Client, g *v1alpha1.PermissionGrant) error {
	if err := c.Create(ctx, g); err != nil {
		return fmt.Errorf("create a grant: %w", err)
	}
	g.Status = grant.Compute(g, time.Now())
	if err := c.Status().Update(ctx, g); err != nil {
		return fmt.Errorf("write the status of a grant: %w", err)
	}
	return nil
}

func namespace(i int) string { return fmt.Sprintf("agents-of-team-%03d", i%namespaces) }

// question is as large as those about a change of a Deployment are.
func question(i int) *v1alpha1.PermissionGrant {
	digest := fmt.Sprintf("v1:%08x%s", i*2654435761%(1<<32), strings.Repeat("ab", 28))
	fact := []v1alpha1.Fact{v1alpha1.FactDestructive, v1alpha1.FactSecurity, v1alpha1.FactCredentials, v1alpha1.FactExternal, v1alpha1.FactCost}[i%5]
	session := fmt.Sprintf("ledger-migration-%05x", i/5)
	name := fmt.Sprintf("orders-%d", i)
	return &v1alpha1.PermissionGrant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace(i), Name: grant.Name(digest, 1),
			Labels: map[string]string{
				v1alpha1.LabelSession: session, v1alpha1.LabelSessionNamespace: namespace(i),
				v1alpha1.LabelVerb: string(v1alpha1.VerbUpdate), v1alpha1.LabelQuestion: grant.Question(digest),
			},
		},
		Spec: v1alpha1.PermissionGrantSpec{
			Decisions: []v1alpha1.GrantDecision{},
			Request: v1alpha1.PermissionRequest{
				Type: v1alpha1.RequestExact, Digest: digest, Question: 1, Stage: v1alpha1.StageExecute, MaxUses: 1, UseWithinSeconds: v1alpha1.DefaultUseWithinSeconds,
				Session:   v1alpha1.GrantSession{Namespace: namespace(i), Name: session, UID: types.UID("5d0c1f6e-0f1b-4d51-9a43-7c2d6b8e9c1f"), Epoch: 1},
				Requester: v1alpha1.Requester{Username: "system:serviceaccount:" + namespace(i) + ":agent", PodName: session + "-x7k2p", PodUID: "0b5e7a4c-2f0e-4b53-8a0f-3f5f0c6d7e21", OnBehalfOf: "dora@acme.example"},
				Operation: v1alpha1.GrantOperation{
					Capability: v1alpha1.CapabilityExecuteLocal, Verb: v1alpha1.VerbUpdate, Summary: "update deployments " + namespace(i) + "/" + name,
					Target: v1alpha1.GrantTarget{Group: "apps", Version: "v1", Resource: "deployments", Namespace: namespace(i), Name: name, UID: "66119c06-17bd-4f29-93f6-d9fa0fa389ba"},
				},
				Projection: []string{"metadata.annotations.deployment.kubernetes.io/revision", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion", "metadata.uid", "status"},
				Change:     []string{"spec.replicas: 3 -> 0", "spec.template.spec.containers[orders].image: v1:b1e595a4 -> v1:d234281f", "metadata.annotations.note: (none) -> v1:c0606f02"},
				Facts: []v1alpha1.GrantFact{
					{Fact: fact, Value: v1alpha1.FactPresent, Provenance: v1alpha1.ProvenanceParsed, Why: "a workload that this session did not make is scaled to 0"},
					{Fact: v1alpha1.FactReversible, Value: v1alpha1.FactUnknown, Provenance: v1alpha1.ProvenanceParsed},
				},
				Rules:        []v1alpha1.GrantRule{{Name: "standard/ask-foreign-workloads", Class: v1alpha1.ClassAsk, Reason: "Rule"}},
				Requirements: []v1alpha1.GrantRequirement{{Name: "standard/one-person", Required: int32(1 + i%2)}},
				DecideByTime: metav1.NewTime(time.Now().Add(16 * time.Hour).Truncate(time.Second)),
			},
		},
	}
}

// approver is somebody with the shipped role alone.
func approver(ctx context.Context, c *cluster.Cluster) (*rest.Config, error) {
	const name = "approver"
	err := c.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stepbeyond-approver"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	if err != nil {
		return nil, fmt.Errorf("bind the approver's role: %w", err)
	}
	return c.Env.User(name)
}
