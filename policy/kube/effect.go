package kube

import "slices"

// ObjectDigest is the keyed digest of an object as a request would leave it, without what servers and controllers write
// by themselves. A stored object of the same digest shows that the request took effect. It errs when the object is not
// decoded JSON.
func ObjectDigest(key Key, group, resource string, object map[string]any) (string, error) {
	f := former{key: key, req: &Request{Operation: "UPDATE", Group: group, Resource: resource}}
	plain, err := f.plain(object)
	if err != nil {
		return "", err
	}
	// A grant binds no time of a restart, but which restart took effect can only be told by it.
	kind := groupResource{group, resource}
	path, _ := templatePath(kind)
	restarted := child(plain, append(slices.Clone(path), "metadata", "annotations")...)[annotationRestartedAt]
	p := projection{kind: kind, dropped: map[string]bool{}}
	p.create(plain)
	delete(plain, "status")
	for _, annotation := range controllerAnnotations {
		delete(child(plain, "metadata", "annotations"), annotation)
	}
	p.annotations(child(plain, "metadata"), "metadata.")
	canonical, err := canonicalJSON(map[string]any{"group": group, "resource": resource, "object": plain, "restartedAt": restarted})
	if err != nil {
		return "", err
	}
	return key.Digest(canonical), nil
}
