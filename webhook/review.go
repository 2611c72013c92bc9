package webhook

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// decode reads a review's request; objects that Reviewer has decoded already are taken as they are. The error names the part that cannot be read and never its content.
func decode(req *admission.Request) (kube.Request, error) {
	decoded := kube.Request{
		Operation: string(req.Operation), Group: req.Resource.Group, Version: req.Resource.Version,
		Resource: req.Resource.Resource, Subresource: req.SubResource, Kind: req.Kind.Kind,
		Namespace: req.Namespace, Name: req.Name, DryRun: req.DryRun != nil && *req.DryRun,
	}
	if namespace, name, ok := (identity.Caller{UserInfo: req.UserInfo}).ServiceAccount(); ok {
		decoded.ServiceAccount = kube.ServiceAccount{Namespace: namespace, Name: name}
	}
	for _, part := range []struct {
		name string
		from runtime.RawExtension
		to   *map[string]any
	}{
		{"object", req.Object, &decoded.Object}, {"oldObject", req.OldObject, &decoded.OldObject}, {"options", req.Options, &decoded.Options},
	} {
		if whole, ok := part.from.Object.(*unstructured.Unstructured); ok {
			*part.to = whole.Object
			continue
		}
		if len(part.from.Raw) == 0 {
			continue
		}
		if err := json.Unmarshal(part.from.Raw, part.to); err != nil {
			return decoded, fmt.Errorf("%s is not a JSON object", part.name)
		}
	}
	return decoded, nil
}

// subject is what the created-by stamp of the request's new object is bound to.
func subject(req *kube.Request) stamp.Subject {
	metadata, _ := req.Object["metadata"].(map[string]any)
	generateName, _ := metadata["generateName"].(string)
	name, _ := metadata["name"].(string)
	if name == "" {
		name = req.Name
	}
	namespace, _ := metadata["namespace"].(string)
	if namespace == "" && req.Resource != "namespaces" {
		namespace = req.Namespace
	}
	return stamp.Subject{Group: req.Group, Resource: req.Resource, Namespace: namespace, Name: name, GenerateName: generateName}
}

// unread is the operation of a request that could not be translated: enough for a message.
func unread(req *admission.Request) policy.Operation {
	return policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.Verb(strings.ToLower(string(req.Operation))),
		Target: policy.Target{
			Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource, Subresource: req.SubResource,
			Namespace: req.Namespace, Name: req.Name, Origin: policy.OriginUnknown,
		},
	}
}

var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newDecisionID is a name for one decision: sortable by second, with 40 random bits.
func newDecisionID(now time.Time) string {
	var b [10]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.Unix())<<24)
	_, _ = rand.Read(b[5:]) // crypto/rand never fails
	return "d-" + crockford.EncodeToString(b[:])
}
