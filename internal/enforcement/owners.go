package enforcement

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// owners are the field managers of a place in the object but the manager itself, sorted; of the place around it, when
// nobody owns the place alone.
func owners(object *unstructured.Unstructured, at []step) []string {
	var names []string
	longest := min(2, len(at)) // who owns something elsewhere in the object is no finding
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" || entry.Manager == string(FieldOwner) {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			continue // who wrote it stays unknown; that it differs is known all the same
		}
		length := owned(set, at)
		if length < longest {
			continue
		}
		if length > longest {
			names, longest = nil, length
		}
		names = append(names, entry.Manager)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// owned is how many steps of the path are in the set or lead to something that is.
func owned(set *fieldpath.Set, at []step) int {
	longest := 0
	for i, s := range at {
		element := s.element()
		below := set.WithPrefix(element)
		if set.Members.Has(element) || !below.Empty() {
			longest = i + 1
		}
		set = below
	}
	return longest
}

func (s step) element() fieldpath.PathElement {
	if s.field != "" {
		return fieldpath.PathElement{FieldName: &s.field}
	}
	return fieldpath.PathElement{Key: fieldpath.KeyByFields("name", s.name)}
}
