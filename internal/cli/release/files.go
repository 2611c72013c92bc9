package release

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// files is what the cluster tells of files on the hosts of the control plane. No API call reaches them, and they may
// refuse when nothing else does.
type files struct {
	// made is true when the manager made such files, wherever they were brought.
	made bool
	// unknown is why nothing is known, nil when something is.
	unknown error
}

// lookForFiles asks for the metadata alone, because the Secret holds the secret path of the webhook.
func lookForFiles(ctx context.Context, c client.Reader) files {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: enforcement.SystemNamespace, Name: enforcement.ControlPlaneSecret}
	err := c.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return files{}
	}
	return files{made: err == nil, unknown: err}
}

// saying is what holds of a cluster where no object enforces. since ends the first sentence.
func (f files) saying(cluster, since string) string {
	const takeAway = `On each host, one after the other: where kube-apiserver's --authorization-config names these files, put --authorization-mode back
instead; where --admission-control-config-file does, take it away or the static manifests out of that file. Restart it, stop what
runs sync.sh, delete the files. See "Taking it away" in docs/authorization.md.`
	name := enforcement.SystemNamespace + "/" + enforcement.ControlPlaneSecret
	objects := fmt.Sprintf("No object of Step Beyond enforces anything in cluster %s%s.\n", cluster, since)
	switch {
	case f.unknown != nil:
		return objects + fmt.Sprintf("Whether files on the hosts of the control plane may still refuse could not be looked at: %v.\n", f.unknown) +
			"If there are any: " + takeAway
	case f.made:
		return objects + fmt.Sprintf("Files on the hosts of the control plane may still refuse: Secret %s was there to be copied to them, and nothing in the cluster removes them.\n", name) +
			takeAway + fmt.Sprintf("\nOnce no host has them: kubectl delete secret %s -n %s", enforcement.ControlPlaneSecret, enforcement.SystemNamespace)
	default:
		return fmt.Sprintf("Nothing of Step Beyond enforces anything in cluster %s%s.", cluster, since)
	}
}
