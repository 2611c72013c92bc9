package webhook

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy"
)

// oneSession is a reader that has this session and nothing else.
type oneSession struct {
	reads
	session *v1alpha1.AgentSession
}

func (r oneSession) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.AgentSessionList).Items = []v1alpha1.AgentSession{*r.session}
	return nil
}

// Proves F-1: when the stamping entry did not run, an object that would count as nobody's is refused, and the same object
// with its stamps passes.
func TestAnObjectWithoutItsStampIsRefused(t *testing.T) {
	session := opened(func(s *v1alpha1.AgentSession) {
		s.UID = "session-uid"
		s.Spec.Identity = v1alpha1.SessionIdentity{Type: v1alpha1.IdentityUser, UserName: "release-agent"}
		s.Spec.Authority.Kubernetes = nil
	})
	reader := oneSession{session: session}
	e := &Enforce{
		Store: loaded(t, governedCluster()), Sessions: &identity.Resolver{Cached: reader, Live: reader},
		Origins: &origin.Finder{Live: reader}, Stamper: stamp.Stamper{Key: []byte("key")}, Now: func() time.Time { return now },
	}
	review := func(object map[string]any) admission.Request {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UID: "review", Operation: admissionv1.Create, Namespace: "checkout", Name: "web",
			Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Object: runtime.RawExtension{Raw: text},
			UserInfo: authenticationv1.UserInfo{
				Username: "release-agent", Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=1"}},
			},
		}}
	}
	plain := object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"checkout"}}`)
	response := e.Handle(t.Context(), review(plain))
	if response.Allowed || string(response.Result.Reason) != string(policy.ReasonUnstamped) || !strings.Contains(response.Result.Message, "Next: run this command again in 2 seconds") {
		t.Errorf("got %+v, want Unstamped", response.Result)
	}
	request := review(plain)
	decoded, err := decode(&request)
	if err != nil {
		t.Fatal(err)
	}
	w := stampsOf(e.Stamper, &decoded, "checkout/ledger-migration")
	if response := e.Handle(t.Context(), review(stampedAs(t, &w, decoded.Object))); !response.Allowed {
		t.Errorf("got %+v for the stamped object, want it allowed", response.Result)
	}
}
