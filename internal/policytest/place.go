package policytest

import (
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// linesOf gives the line of each case of the file, for people. It is empty when the file cannot be read so: the reader that
// decides says what is wrong with it.
func linesOf(folder fs.FS) []int {
	content, err := fs.ReadFile(folder, File)
	if err != nil {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	cases := child(child(document.Content[0], "spec"), "cases")
	if cases == nil || cases.Kind != yaml.SequenceNode {
		return nil
	}
	lines := make([]int, 0, len(cases.Content))
	for _, item := range cases.Content {
		lines = append(lines, item.Line)
	}
	return lines
}

// child is the value of a key of a mapping, through an alias; nil for anything else.
func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != key {
			continue
		}
		value := node.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		return value
	}
	return nil
}
