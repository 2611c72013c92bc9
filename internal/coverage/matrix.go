package coverage

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/version"

	"stepbeyond.dev/stepbeyond/policy"
)

// Row is one operation on one resource or subresource.
type Row struct {
	// Resource is that of the newest version.
	Resource
	// Versions that give this row, newest first.
	Versions  []string
	Operation Operation
	// Verbs of discovery that become the operation.
	Verbs []string
	// Own is the class on an object that this session made, Foreign the largest on any other. A creation has no object
	// yet and one class. Both are 0 where nothing is gated.
	Own, Foreign policy.Class
	// Because are the facts, or Rule or Uncatalogued, that give the larger class.
	Because []string
	Gate    Gate
}

// Matrix asks for every operation of every resource. An operation without a class, a verb that is not known, a class in
// another namespace below FORBIDDEN and a floor that refuses more than the engine are errors.
func Matrix(resources []Resource) ([]Row, error) {
	j, err := newJudge()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for i := range resources {
		of, err := j.rows(&resources[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", resources[i].GroupVersionResource, err)
		}
		rows = append(rows, of...)
	}
	slices.SortFunc(rows, compare)
	return join(rows), nil
}

// join takes the row of an older version into that of the newer one before it, when they say the same.
func join(rows []Row) []Row {
	var result []Row
	for _, row := range rows {
		if last := len(result) - 1; last >= 0 && alike(&result[last], &row) {
			result[last].Versions = append(result[last].Versions, row.Version)
			continue
		}
		row.Versions = []string{row.Version}
		result = append(result, row)
	}
	return result
}

func alike(a, b *Row) bool {
	return a.Group == b.Group && a.Path() == b.Path() && a.Operation == b.Operation && a.Own == b.Own && a.Foreign == b.Foreign &&
		a.Gate == b.Gate && slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.Because, b.Because)
}

func compare(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Path(), b.Path()),
		cmp.Compare(slices.Index(operations, a.Operation), slices.Index(operations, b.Operation)),
		-version.CompareKubeAwareVersionStrings(a.Version, b.Version),
	)
}
