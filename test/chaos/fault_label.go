package main

import (
	"context"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

func labelRemoved() *row {
	return &row{
		name: "label-removed", title: "Namespace label removed", asksAgain: true,
		auto:     "refused",
		done:     "The label " + v1alpha1.LabelProfile + " is taken from the agent's namespace, and put back after the fault.",
		expected: "The namespace stays enforced. Without a profile no policy says what its agent may do: AUTO is refused, fail closed. An approval holds for the policies that it was given under: with the profile gone it is asked again.",
		begin: func(ctx context.Context, s *scene) error {
			return s.kubectl(ctx, "label", "namespace", home, v1alpha1.LabelProfile+"-")
		},
		end: func(ctx context.Context, s *scene) error {
			return s.kubectl(ctx, "label", "namespace", home, v1alpha1.LabelProfile+"="+cluster.Profile)
		},
		person: "put the label back",
	}
}
