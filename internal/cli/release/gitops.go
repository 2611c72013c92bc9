package release

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

// hands are field managers of people and of Kubernetes itself; everybody else writes objects again by themselves.
var hands = []string{"kubectl", "before-first-apply", "kube-controller-manager", "kube-apiserver", string(factory.FieldOwner)}

// managers names who else writes the spec or the labels of an object, with commas; empty for nobody but people.
func managers(object client.Object) string {
	var found []string
	for _, entry := range object.GetManagedFields() {
		byHand := slices.ContainsFunc(hands, func(hand string) bool {
			return entry.Manager == hand || strings.HasPrefix(entry.Manager, hand+"-")
		})
		if !byHand && entry.Subresource == "" && writes(entry.FieldsV1) && !slices.Contains(found, entry.Manager) {
			found = append(found, entry.Manager)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

func writes(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	text := fields.GetRawString()
	return strings.Contains(text, `"f:spec"`) || strings.Contains(text, `"f:labels"`)
}
