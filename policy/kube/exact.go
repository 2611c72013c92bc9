package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"stepbeyond.dev/stepbeyond/policy"
)

// ErrUnnamed tells that a deletion names no object, so no exact form can bind it (design section 7).
var ErrUnnamed = errors.New("name: a deletion without a name has no exact form")

// Binding is what a grant binds to beyond the request and its target (requirement G-2).
type Binding struct {
	SessionUID string
	Epoch      int64
	Stage      policy.Stage
}

// Exact is the exact operation.
type Exact struct {
	// Canonical is the RFC 8785 form that [Key.Digest] covers. It holds values of Secrets in clear: never store it.
	Canonical []byte
	// Lines say the same to people: at most 64 of at most 512 printable ASCII characters each.
	Lines []string
	// Dropped names the fields that the form leaves out, sorted.
	Dropped []string
	// Command of a connection, word by word; nil where there is none, or one of its words is empty, longer than 240
	// characters or not printable ASCII without a space.
	Command []string
	// Manner is the RFC 8785 form of what a wider answer binds apart from verb, target and Command; nil where these say
	// all. It holds values in clear: never store it.
	Manner []byte
}

// ExactForm gives the form of a request on its target, whose UID the caller completes where [Operation] could not know
// it. The form holds what happens and nothing that differs from try to try: all ways to patch that end in one object
// have one form, and a scale of a built-in kind whose Request.Parent is set has that of an update of spec.replicas.
// Without Parent, and for other kinds, a scale keeps a form of its own. The key makes the short digests in Lines.
//
// It errs with [ErrUnnamed], or when the objects are not decoded JSON.
func ExactForm(key Key, req Request, target policy.Target, b Binding) (Exact, error) {
	verb, err := verbOf(&req)
	if err != nil {
		return Exact{}, err
	}
	if verb == policy.VerbDelete && req.Name == "" {
		return Exact{}, ErrUnnamed
	}
	if scaled, ok := withoutScale(&req); ok {
		req = scaled
	}
	f := &former{
		key: key, req: &req, target: &target,
		projection: projection{kind: req.kind(), subresource: req.Subresource, dropped: map[string]bool{}},
	}
	changed, lines, err := f.change(verb)
	if err != nil {
		return Exact{}, err
	}
	canonical, err := canonicalJSON(map[string]any{
		"verb": verb, "group": target.Group, "version": target.Version, "resource": target.Resource,
		"subresource": req.Subresource, "namespace": target.Namespace, "name": target.Name, "uid": target.UID,
		"sessionUID": b.SessionUID, "epoch": b.Epoch, "stage": b.Stage, "change": changed,
	})
	if err != nil {
		return Exact{}, err
	}
	exact := Exact{Canonical: canonical, Lines: lines, Dropped: f.projection.names()}
	exact.Command, exact.Manner, err = mannerOf(verb, &req, changed)
	return exact, err
}

// former makes the form of one request.
type former struct {
	key        Key
	req        *Request
	target     *policy.Target
	projection projection
}

func (f *former) change(verb policy.Verb) (any, []string, error) {
	switch verb {
	case policy.VerbCreate:
		return f.creation()
	case policy.VerbUpdate:
		return f.update()
	case policy.VerbDelete:
		return f.deletion()
	default:
		return f.connection()
	}
}

// plain copies one object, with its own uid and generated name replaced wherever they stand.
func (f *former) plain(fields map[string]any) (map[string]any, error) {
	names := map[string]string{}
	if uid := metadataText(fields, "uid"); uid != "" {
		names[uid] = "$uid"
	}
	generated := f.req.Operation == "CREATE" && f.target.Name == "" && metadataText(fields, "generateName") != ""
	if name := metadataText(fields, "name"); generated && name != "" {
		names[name] = "$name"
	}
	if fields == nil {
		return map[string]any{}, nil
	}
	plain, err := plainCopy(fields, names)
	if err != nil {
		return nil, err
	}
	return plain.(map[string]any), nil
}

func (f *former) creation() (any, []string, error) {
	object, err := f.plain(f.req.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	f.projection.create(object)
	return object, f.lines(nil, object), nil
}

func (f *former) update() (any, []string, error) {
	old, err := f.plain(f.req.OldObject)
	if err != nil {
		return nil, nil, fmt.Errorf("oldObject: %w", err)
	}
	object, err := f.plain(f.req.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	f.projection.update(old, object)
	canonical, err := canonicalJSON(old)
	if err != nil {
		return nil, nil, fmt.Errorf("oldObject: %w", err)
	}
	sum := sha256.Sum256(canonical)
	changes := diff(old, object)
	forms := make([]any, 0, len(changes))
	for i := range changes {
		forms = append(forms, changes[i].form())
	}
	lines := f.lines(old, object)
	return map[string]any{"old": hex.EncodeToString(sum[:]), "changes": forms}, lines, nil
}

// deletion binds the options that decide what is lost. Of the grace only "at once" counts, because the API server fills
// it in on the way; of a resourceVersion only that there is one, because it differs from try to try.
func (f *former) deletion() (any, []string, error) {
	var r reading
	options := r.root("options", f.req.Options)
	preconditions := options.object("preconditions")
	form := map[string]any{"propagation": options.text("propagationPolicy")}
	if options.fields["orphanDependents"] != nil {
		form["orphanDependents"] = options.flag("orphanDependents")
	}
	if grace, set := options.number("gracePeriodSeconds"); set && grace == 0 {
		form["grace"] = 0
	}
	if uid := preconditions.text("uid"); uid != "" {
		form["uid"] = uid
	}
	if preconditions.text("resourceVersion") != "" {
		form["resourceVersion"] = "$resourceVersion"
	}
	if options.flag("ignoreStoreReadErrorWithClusterBreakingPotential") {
		form["ignoreStoreReadError"] = true
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	return form, f.deletionLines(options), nil
}

// connection binds the options as they are: what a command does is all there is to approve.
func (f *former) connection() (any, []string, error) {
	options, err := f.plain(f.req.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	return options, f.connectionLines(options), nil
}
