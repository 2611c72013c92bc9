package corpora

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy/breaker"
	"stepbeyond.dev/stepbeyond/policy/scope"
)

// loops replays runs. What the recordings do not tell (state, source, environment, authority) counts as known and
// unchanged, the worst case for false signals.
func loops(data fs.FS, _ *judge) ([]*Row, error) {
	runs, err := read[struct {
		ID    string
		Calls []struct {
			Tool   string
			Args   object
			OK     bool
			Result string `json:"result_sha256"`
		}
	}](data, "k8s-agent-traces/trajectories.jsonl")
	if err != nil {
		return nil, err
	}
	alarms := newRow("loop signals in runs that are none", "k8s-agent-traces", 0)
	for _, run := range runs {
		var events []breaker.Event
		for _, call := range run.Calls {
			inputs, err := json.Marshal(call.Args)
			if err != nil {
				return nil, err
			}
			events = append(events, event(call.Tool, string(inputs), call.Result, !call.OK))
		}
		alarms.count(run.ID, signals(events))
	}
	cases, err := read[struct {
		ID    string
		Label string `json:"orig_label"`
		Steps []struct {
			Action, Result string
			Error          bool
		}
	}](data, "loops-openhands/cases.jsonl")
	missed, falsely := newRow("stuck runs without a loop signal", "loops-openhands", 0), newRow("loop signals in runs that are none", "loops-openhands", 0)
	for _, line := range cases {
		var events []breaker.Event
		for _, step := range line.Steps {
			action, inputs, _ := strings.Cut(step.Action, ":")
			events = append(events, event(action, inputs, step.Result, step.Error))
		}
		if line.Label == "stuck" {
			missed.count(line.ID, !signals(events))
		} else {
			falsely.count(line.ID, signals(events))
		}
	}
	return []*Row{alarms, missed, falsely}, err
}

func event(action, inputs, result string, failed bool) breaker.Event {
	same := breaker.Known("")
	e := breaker.Event{
		Action: action, Inputs: breaker.Known(inputs), State: same, Source: same, Environment: same, Authority: same,
		Result: breaker.Known(result), Outcome: breaker.OutcomeSucceeded,
	}
	if failed {
		e.Outcome = breaker.OutcomeFailed
	}
	return e
}

func signals(events []breaker.Event) bool {
	observed := breaker.Settings{Key: []byte("the key of a measurement")}.Replay(events)
	return slices.ContainsFunc(observed, func(o breaker.Observation) bool { return o.Signal != breaker.SignalNone })
}

// scopeWords measures the words that the detector knows (every finding counts), and how often it would turn strict scope
// on where a word search finds nothing.
func scopeWords(data fs.FS, _ *judge) ([]*Row, error) {
	lexicons, err := scope.Builtin()
	if err != nil {
		return nil, err
	}
	detector, err := scope.Compile(lexicons...)
	if err != nil {
		return nil, err
	}
	lines, err := read[struct {
		ID, Lang, Text string
		HasLimiter     *bool `json:"has_limiter"`
	}](data, "scope-language/tldr_limiter_words.jsonl")
	if err != nil {
		return nil, err
	}
	var rows []*Row
	for _, language := range []string{"en", "pl"} {
		missed := newRow("scope words not seen, "+language, "scope-language", 0.05)
		alarms := newRow("strict scope without a scope word, "+language, "scope-language", 1)
		for _, line := range lines {
			switch {
			case line.Lang != language || line.HasLimiter == nil:
			case *line.HasLimiter:
				missed.count(line.ID, len(detector.Detect(line.Text)) == 0)
			default:
				alarms.count(line.ID, limits(detector, line.Text))
			}
		}
		rows = append(rows, missed, alarms)
	}
	prompts, err := read[struct {
		ID, Text string
		Matched  []string `json:"matched_words"`
	}](data, "scope-language/user_prompts_unlabelled.jsonl")
	alarms := newRow("strict scope without a scope word, prompts", "scope-language", 1)
	for _, line := range prompts {
		if len(line.Matched) == 0 {
			alarms.count(line.ID, limits(detector, line.Text))
		}
	}
	return append(rows, alarms), err
}

func limits(detector *scope.Detector, text string) bool {
	return slices.ContainsFunc(detector.Detect(text), func(f scope.Finding) bool { return f.Kind == scope.KindLimit })
}
