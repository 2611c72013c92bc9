package coverage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/coverage"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	grants     = v1alpha1.GroupVersion.WithResource("permissiongrants")
	dryRun     = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
)

// The targets of requests: made by the administrator, one with the stamp that the server gives what the agent makes.
const (
	own     = "own"
	foreign = "foreign"
	created = "created" // by a request, if it is let through
)

var numbers = map[string]int{own: 1, foreign: 2, created: 3}

// request is that of one row on one target.
type request struct {
	row  coverage.Row
	name string // own, foreign or created
}

func rowOf(path string, operation coverage.Operation) coverage.Row {
	for _, row := range rows {
		if row.Group == "" && row.Path() == path && row.Operation == operation {
			return row
		}
	}
	return coverage.Row{}
}

// requestsOf a row: a creation of an object has no target, everything else has an own and a foreign one.
func requestsOf(row coverage.Row) []request {
	if row.Operation == coverage.OperationCreate && row.Subresource == "" {
		return []request{{row, created}}
	}
	return []request{{row, own}, {row, foreign}}
}

// class that the matrix says; 0 where nothing is gated.
func (r request) class() policy.Class {
	if r.name == foreign {
		return r.row.Foreign
	}
	return r.row.Own
}

func (r request) place() coverage.Place {
	at := coverage.Place{Name: r.name, Number: numbers[r.name]}
	if r.row.Namespaced {
		at.Namespace = home
	}
	return at
}

// example is what the request carries.
func (r request) example() (*unstructured.Unstructured, error) {
	object, _, err := coverage.Example(r.row.Kind, r.place())
	if r.row.Kind.Kind == "Binding" && r.name == created {
		object.SetName(foreign) // a Binding names its Pod
	}
	return object, err
}

// parent is the example of the resource itself, of which the row may be a subresource.
func (r request) parent() (*unstructured.Unstructured, error) {
	for i := range resources {
		if resources[i].GroupVersionResource == r.row.GroupVersionResource && resources[i].Subresource == "" {
			object, _, err := coverage.Example(resources[i].Kind, r.place())
			return object, err
		}
	}
	return nil, fmt.Errorf("%s is not discovered", r.row.GroupVersionResource)
}

// target makes sure that the request has one of its origin, and returns its name.
func (r request) target(ctx context.Context) (string, error) {
	object, err := r.make(ctx)
	if err != nil {
		return "", fmt.Errorf("target: %w", err)
	}
	var by any
	if r.name == own {
		by = r.stamp(object)
	}
	if object.GetAnnotations()[v1alpha1.AnnotationCreatedBy] != by {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationCreatedBy: by}}})
		if err != nil {
			return "", fmt.Errorf("target: %w", err)
		}
		if _, err := r.of(dynAdmin).Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return "", fmt.Errorf("target: %w", err)
		}
	}
	return object.GetName(), nil
}

// make creates the target where it is not there. Of kinds of which a namespace has but one, own and foreign are the same
// object; nobody but the manager makes a grant, so a question of the agent is taken.
func (r request) make(ctx context.Context) (*unstructured.Unstructured, error) {
	if r.row.GroupVersionResource == grants {
		list, err := r.of(dynAdmin).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		if len(list.Items) <= numbers[r.name] {
			return nil, errors.New("the agent asked too few questions")
		}
		return &list.Items[numbers[r.name]], nil
	}
	object, err := r.parent()
	if err != nil {
		return nil, err
	}
	made, err := r.of(dynAdmin).Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return r.of(dynAdmin).Get(ctx, object.GetName(), metav1.GetOptions{})
	}
	return made, err
}

func (r request) stamp(object *unstructured.Unstructured) string {
	return stamper.CreatedBy(session, stamp.Subject{
		Group: r.row.Group, Resource: r.row.Resource.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
	})
}

func (r request) of(d dynamic.Interface) dynamic.ResourceInterface {
	if r.row.Namespaced {
		return d.Resource(r.row.GroupVersionResource).Namespace(home)
	}
	return d.Resource(r.row.GroupVersionResource)
}

// send sends the request as the agent. The second error is that of what has to be there before.
func (r request) send(ctx context.Context) (answer, failure error) {
	name := r.name
	if name != created {
		if name, failure = r.target(ctx); failure != nil {
			return nil, failure
		}
	}
	object, failure := r.example()
	if failure != nil {
		return nil, failure
	}
	var subresources []string
	if r.row.Subresource != "" {
		subresources = []string{r.row.Subresource}
		object.SetName(name)
	}
	switch r.row.Operation {
	case coverage.OperationCreate:
		_, answer = r.of(agent).Create(ctx, object, metav1.CreateOptions{}, subresources...)
	case coverage.OperationUpdate:
		return r.update(ctx, name, subresources)
	case coverage.OperationDelete:
		answer = r.of(agent).Delete(ctx, name, metav1.DeleteOptions{})
	case coverage.OperationDeleteCollection:
		answer = r.of(agent).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	case coverage.OperationConnect:
		answer = r.connect(ctx, object)
	default:
		failure = fmt.Errorf("operation %s", r.row.Operation)
	}
	return answer, failure
}

func (r request) update(ctx context.Context, name string, subresources []string) (answer, failure error) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, coverage.Touched)
	if r.row.Subresource == "scale" {
		patch = `{"spec":{"replicas":2}}`
		if failure := r.settled(ctx, name); failure != nil {
			return nil, failure
		}
	}
	if strings.Contains(strings.Join(r.row.Verbs, " "), "patch") {
		_, answer = r.of(agent).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return answer, nil
	}
	object, failure := r.of(dynAdmin).Get(ctx, name, metav1.GetOptions{})
	if failure != nil {
		return nil, failure
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[coverage.Touched] = "true"
	object.SetAnnotations(annotations)
	_, answer = r.of(agent).Update(ctx, object, metav1.UpdateOptions{}, subresources...)
	return answer, nil
}

// settled waits until the controller of a built-in workload has written its status: the webhook compares what a scale
// changes only with the version that the scale was made against.
func (r request) settled(ctx context.Context, name string) error {
	if r.row.Kind.Group != "autoscaling" || r.row.Group != "" && r.row.Group != "apps" {
		return nil
	}
	return eventually(ctx, func() error {
		object, err := r.of(dynAdmin).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		replicas, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
		if observed != object.GetGeneration() || replicas == 0 {
			return fmt.Errorf("%s %s has %d replicas of generation %d", r.row.Resource.Resource, name, replicas, observed)
		}
		return nil
	})
}

// connect opens a connection as far as admission: no kubelet answers.
func (r request) connect(ctx context.Context, options *unstructured.Unstructured) error {
	path := "/api/" + r.row.Version
	if r.row.Namespaced {
		path += "/namespaces/" + home
	}
	post := agentRaw.Post().AbsPath(path, r.row.Resource.Resource, r.name, r.row.Subresource)
	for key, value := range options.Object {
		switch values := value.(type) {
		case []any:
			for _, item := range values {
				post.Param(key, fmt.Sprint(item))
			}
		case bool:
			post.Param(key, fmt.Sprint(value))
		}
	}
	return post.Do(ctx).Error()
}

// outcome is what came of a request.
type outcome struct {
	Class string
	Gate  coverage.Gate
}

var floorSpoke = regexp.MustCompile(`ValidatingAdmissionPolicy 'stepbeyond-floor-[a-z]+' with binding`)

// try sends the request and reads who answered with which class: in the answer, or in the API server's record of what
// was let through.
func (r request) try(ctx context.Context) (got outcome, answer, failure error) {
	mark, failure := auditMark(ctx)
	if failure != nil {
		return got, nil, failure
	}
	if answer, failure = r.send(ctx); failure != nil {
		return got, nil, failure
	}
	if got, refused := refusal(answer); refused {
		return got, answer, nil
	}
	events, failure := plane.AuditSince(mark, agentName)
	got.Gate = coverage.GateNone
	for _, event := range events {
		if class := event.Annotations[enforcement.EntryEnforce+"/class"]; class != "" {
			got = outcome{class, coverage.GateWebhook}
		}
	}
	return got, answer, failure
}

// auditMark is a place between two lines: somebody else's record may be half written.
func auditMark(ctx context.Context) (mark env.AuditMark, err error) {
	file, err := os.Open(filepath.Join(plane.Dir(), "logs", "audit.log"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	err = eventually(ctx, func() error {
		if mark, err = plane.AuditMark(); err != nil {
			return err
		}
		last := []byte{'\n'}
		if _, err := file.ReadAt(last, int64(mark)-1); err != nil || last[0] != '\n' {
			return fmt.Errorf("audit log ends within a line: %w", err)
		}
		return nil
	})
	return mark, err
}

// refusal reads the answer; refused is false when neither floor nor webhook wrote it.
func refusal(answer error) (got outcome, refused bool) {
	var status apierrors.APIStatus
	if !errors.As(answer, &status) {
		return got, false
	}
	if floorSpoke.MatchString(status.Status().Message) {
		return outcome{policy.ClassForbidden.String(), coverage.GateFloor}, true // the floor holds nothing else
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type == "stepbeyond.dev/Class" {
				return outcome{cause.Message, coverage.GateWebhook}, true
			}
		}
	}
	return got, false
}

// want is the outcome that the matrix says. Where floor and webhook enforce, the floor is asked first.
func (r request) want() outcome {
	want := outcome{Class: r.class().String(), Gate: r.row.Gate}
	if want.Gate == coverage.GateBoth {
		want.Gate = coverage.GateFloor
	}
	return want
}
