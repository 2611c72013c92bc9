package main

import (
	"fmt"
	"os"
	"regexp"

	"sigs.k8s.io/yaml"
)

// step is one entry of story.yaml, where the fields are explained. Exactly one of Do and Run is set.
type step struct {
	Do action `json:"do,omitempty"`

	Step     string `json:"step,omitempty"`
	Who      who    `json:"who,omitempty"`
	What     string `json:"what,omitempty"`
	Run      string `json:"run,omitempty"`
	Times    int    `json:"times,omitempty"`
	Question string `json:"question,omitempty"`
	Says     string `json:"says,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// who is one of the four users of the story.
type who string

const (
	platform  who = "platform"
	agent     who = "agent"
	approver  who = "approver"
	bystander who = "bystander"
)

// action is something that the demo does to the machinery between two rows.
type action string

const (
	getAgentToken action = "agent-token"
	applyMutation action = "mutate"
	killManager   action = "kill-manager"
	startManager  action = "start-manager"
)

// readStory reads story.yaml; an unknown field or a step that can be nothing is an error.
func readStory(path string) ([]step, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("story: %w", err)
	}
	var steps []step
	if err := yaml.UnmarshalStrict(text, &steps); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	seen := map[string]bool{}
	for i, s := range steps {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%s: step %d %s: %w", path, i+1, s.Step, err)
		}
		if s.Do == "" && seen[s.Step] {
			return nil, fmt.Errorf("%s: step %s is there twice", path, s.Step)
		}
		seen[s.Step] = true
	}
	return steps, nil
}

func (s step) check() error {
	switch s.Do {
	case getAgentToken, applyMutation, killManager, startManager:
		return nil
	case "":
	default:
		return fmt.Errorf("do: unknown action %q", s.Do)
	}
	switch s.Who {
	case platform, agent, approver, bystander:
	default:
		return fmt.Errorf("who: unknown user %q", s.Who)
	}
	if s.Step == "" || s.What == "" || s.Run == "" {
		return fmt.Errorf("step, what and run are required")
	}
	if _, err := regexp.Compile(s.Says); err != nil {
		return fmt.Errorf("says: %w", err)
	}
	return nil
}
