// Package factory gives the commands of kubectl stepbeyond what they share: streams, kubectl's connection flags, and
// clients made from them.
package factory

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// FieldOwner owns the fields that the plugin sets.
const FieldOwner = client.FieldOwner("kubectl-stepbeyond")

// Factory makes what commands need from the flags of one command line.
type Factory struct {
	genericiooptions.IOStreams
	// Flags are kubectl's connection flags without --cluster, which release uses for something else; --context chooses
	// a cluster as well.
	Flags *genericclioptions.ConfigFlags
}

// New makes a factory with the flags unset.
func New(streams genericiooptions.IOStreams) *Factory {
	flags := genericclioptions.NewConfigFlags(true)
	flags.ClusterName = nil
	return &Factory{IOStreams: streams, Flags: flags}
}

// Namespace is the value of --namespace; empty when it was not given. The namespace of the kubeconfig's context does not
// count: what lets go must be named.
func (f *Factory) Namespace() string { return *f.Flags.Namespace }

// WorkNamespace is the value of --namespace, or the namespace of the kubeconfig's context, for commands that let nobody go.
func (f *Factory) WorkNamespace() (string, error) {
	namespace, _, err := f.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return namespace, nil
}

// A person waits for each command, so a list of many pages is not slowed down as a controller is.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 300
)

// Connection says where the API server is and who the caller is. Warnings of the API server go to ErrOut.
func (f *Factory) Connection() (*rest.Config, error) {
	log.SetLogger(logr.Discard()) // the plugin speaks through its streams only
	config, err := f.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(f.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	return config, nil
}

// Scheme knows the built-in kinds and ours.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	return scheme, nil
}

// Client reads and writes past any cache. It knows the built-in kinds and ours.
func (f *Factory) Client() (client.WithWatch, error) {
	config, err := f.Connection()
	if err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// ClusterName is the kubeconfig's name of the cluster that commands talk to. It is an error when the kubeconfig names none.
func (f *Factory) ClusterName() (string, error) {
	raw, err := f.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	name := raw.CurrentContext
	if *f.Flags.Context != "" {
		name = *f.Flags.Context
	}
	kubeContext := raw.Contexts[name]
	if kubeContext == nil || kubeContext.Cluster == "" {
		return "", fmt.Errorf("context %q of the kubeconfig names no cluster; choose one with --context", name)
	}
	return kubeContext.Cluster, nil
}

// Username is who the API server takes the caller for.
func Username(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", fmt.Errorf("ask the API server who you are: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
