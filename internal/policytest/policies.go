package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// policies are the objects that a test decides under.
type policies struct {
	input policystore.Input
	// places of the objects by UID, for errors.
	places map[types.UID]string
}

// readPolicies reads every document of the files as an API server would store it: checked and completed by its CRD.
func readPolicies(folder fs.FS, files []string) (*policies, error) {
	p := &policies{places: map[types.UID]string{}}
	var problems []error
	for _, file := range files {
		found, err := documents(folder, file)
		if err != nil {
			problems = append(problems, err)
		}
		for _, d := range found {
			if err := p.add(d); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return p, errors.Join(problems...)
}

// Source is a file with policies.
type Source struct {
	// Name of the file, for errors.
	Name    string
	Content []byte
}

// ReadPolicies reads files with ClusterAgentPolicy, AgentPolicy and Namespace documents as a cluster does: refused and
// completed by the schemas of their CRDs. What can be read is in the input also when there are errors; each names file,
// document and field. Whether the policies come into force is for the snapshot to say.
func ReadPolicies(sources []Source) (policystore.Input, []error) {
	p := &policies{places: map[types.UID]string{}}
	var problems []error
	for _, source := range sources {
		found, err := split(source.Name, source.Content)
		if err != nil {
			problems = append(problems, err)
		}
		for _, d := range found {
			if err := p.add(d); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return p.input, problems
}

func (p *policies) add(d document) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(d.source, &kind); err != nil {
		return fmt.Errorf("%s: %w", d.place, err)
	}
	var object client.Object
	switch kind.APIVersion + "/" + kind.Kind {
	case v1alpha1.GroupVersion.String() + "/ClusterAgentPolicy":
		object = &v1alpha1.ClusterAgentPolicy{}
	case v1alpha1.GroupVersion.String() + "/AgentPolicy":
		object = &v1alpha1.AgentPolicy{}
	case "v1/Namespace":
		object = &corev1.Namespace{}
	default:
		return fmt.Errorf("%s: kind: %s %s is no policy: want ClusterAgentPolicy or AgentPolicy of %s, or Namespace of v1",
			d.place, kind.APIVersion, kind.Kind, v1alpha1.GroupVersion)
	}
	if err := d.admit(kind.GroupVersionKind(), object); err != nil {
		return err
	}
	if object.GetName() == "" {
		return fmt.Errorf("%s: metadata.name: is required", d.place)
	}
	return p.keep(d, kind.Kind, object)
}

// keep gives the object what an API server gives it: a UID and a generation.
func (p *policies) keep(d document, kind string, object client.Object) error {
	id := types.UID(kind + " " + client.ObjectKeyFromObject(object).String())
	if other, twice := p.places[id]; twice {
		return fmt.Errorf("%s: %s %s stands in %s already", d.place, kind, object.GetName(), other)
	}
	p.places[id] = d.place
	object.SetUID(id)
	object.SetGeneration(1)
	switch object := object.(type) {
	case *v1alpha1.ClusterAgentPolicy:
		p.input.Cluster = append(p.input.Cluster, *object)
	case *v1alpha1.AgentPolicy:
		if object.Namespace != enforcement.SystemNamespace && object.Name != policystore.NamespacePolicyName {
			return fmt.Errorf("%s: metadata.name: outside %s the only name is %s", d.place, enforcement.SystemNamespace, policystore.NamespacePolicyName)
		}
		p.input.Policies = append(p.input.Policies, *object)
	case *corev1.Namespace:
		p.input.Namespaces = append(p.input.Namespaces, *object)
	}
	return nil
}

// label puts a session's namespace under its profile.
func (p *policies) label(s *Session) error {
	position := slices.IndexFunc(p.input.Namespaces, func(n corev1.Namespace) bool { return n.Name == s.Namespace })
	if position < 0 {
		position = len(p.input.Namespaces)
		p.input.Namespaces = append(p.input.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})
	}
	if s.Profile == "" {
		return nil
	}
	namespace := &p.input.Namespaces[position]
	if has := namespace.Labels[v1alpha1.LabelProfile]; has != "" && has != s.Profile {
		return fmt.Errorf("profile: namespace %s has profile %s already", s.Namespace, has)
	}
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, v1alpha1.LabelProfile, s.Profile)
	return nil
}

// snapshot compiles the policies. A policy that would not come into force is an error: it cannot be tested.
func (p *policies) snapshot(now metav1.Time) (*policystore.Snapshot, error) {
	p.input.Now = now
	snapshot, err := policystore.Build(p.input)
	if err != nil {
		return nil, err
	}
	var problems []error
	refuse := func(id types.UID, found []policy.Problem) {
		for _, problem := range found {
			problems = append(problems, fmt.Errorf("%s: spec.%w", p.places[id], problem))
		}
	}
	for i := range p.input.Cluster {
		refuse(p.input.Cluster[i].UID, snapshot.Problems(p.input.Cluster[i].UID))
	}
	for i := range p.input.Policies {
		// Also those that no namespace of the test is bound to.
		refuse(p.input.Policies[i].UID, policystore.CheckAgentPolicy(&p.input.Policies[i]))
	}
	return snapshot, errors.Join(problems...)
}
