package policytest

import (
	"encoding/json"
	"fmt"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/tool"
)

// toolOperation reads the call as the decision API does. Errors name the field.
func toolOperation(t *ToolOperation) (policy.Operation, error) {
	if t.Name == "" {
		return policy.Operation{}, fmt.Errorf("name: is required")
	}
	declared := tool.Declared{Stage: t.Declared.Stage}
	for _, part := range []struct {
		field string
		from  []string
		to    *[]policy.Fact
	}{{"present", t.Declared.Present, &declared.Present}, {"absent", t.Declared.Absent, &declared.Absent}} {
		for _, name := range part.from {
			fact, ok := policy.ParseFact(name)
			if !ok {
				return policy.Operation{}, fmt.Errorf("declared.%s: unknown fact %q", part.field, name)
			}
			*part.to = append(*part.to, fact)
		}
	}
	switch t.Declared.Stage {
	case "", policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish:
	default:
		return policy.Operation{}, fmt.Errorf("declared.stage: unknown stage %q", t.Declared.Stage)
	}
	call := tool.Call{Name: t.Name, Description: t.Description, Arguments: t.Arguments, Declared: declared}
	return tool.Operation(call, tool.Known{Context: t.Context, Optional: t.Optional}), nil
}

// bindTool completes the operation with a digest of the call by this session: another name, argument, stage or epoch is
// another call.
func (p *prepared) bindTool(view *policy.SessionView) error {
	canonical, err := json.Marshal([]any{p.operation.Tool, p.arguments, p.operation.Stage, view.UID, view.Epoch})
	if err != nil {
		return fmt.Errorf("operation.tool.arguments: %w", err)
	}
	p.operation.Digest = testKey.Digest(canonical)
	return nil
}
