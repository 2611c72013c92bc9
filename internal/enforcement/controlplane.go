package enforcement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/policy"
)

// Keys of the Secret ControlPlaneSecret, and names of the files below ControlPlane.Directory that they become.
const (
	// FileAuthorization is for kube-apiserver's flag --authorization-config. The API server reads it again when it changes.
	FileAuthorization = "authorization-configuration.yaml"
	// FileStaticManifests belongs into a folder of its own, which the admission configuration names.
	FileStaticManifests = "static-manifests.yaml"
	// The name of the kubeconfig holds its digest: the API server reads it again only when the configuration names another.
	kubeconfigPrefix, kubeconfigSuffix = "webhook-", ".kubeconfig"
)

// ControlPlaneSecret is the Secret of the system namespace that holds the files for the hosts of the control plane.
const ControlPlaneSecret = "stepbeyond-control-plane"

// StaticGuard names the static ValidatingAdmissionPolicy and its binding. The API server wants the suffix.
const StaticGuard = "stepbeyond-guard.static.k8s.io"

// ControlPlane is what the files for the hosts of the control plane are made of. They are optional, and no API object can
// change them on a host.
type ControlPlane struct {
	Scope Scope
	// Reads are selectors of rules about reads that no built-in condition covers.
	Reads Reads
	// Endpoint of the authorization webhook. The API server cannot call a Service there: without URL no file about
	// authorization is made. PathPrefix and CABundle are as in admission.
	Endpoint Endpoint
	// ServerName in the serving certificate, where it is not the host of the URL.
	ServerName string
	// ClientCertificate and ClientKey are files on the hosts that the API server authenticates itself with. Omitted, it shows
	// no certificate.
	ClientCertificate, ClientKey string
	// Directory of the files on the hosts: absolute.
	Directory string
	// Version is the baseline's: "v1".
	Version string
}

// Files by name. Equal input gives equal bytes.
func (c ControlPlane) Files() (map[string][]byte, error) {
	guard, err := staticManifests(c.Scope, c.Version)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{FileStaticManifests: guard}
	if c.Endpoint.URL == "" {
		return files, nil
	}
	if err := validateDirectory(c.Directory); err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfig()
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(kubeconfig)
	name := kubeconfigPrefix + hex.EncodeToString(digest[:8]) + kubeconfigSuffix
	configuration, err := authorizationConfiguration(c.Scope, c.Reads, c.Directory+"/"+name)
	if err != nil {
		return nil, err
	}
	files[name], files[FileAuthorization] = kubeconfig, configuration
	return files, nil
}

// kubeconfig says where the authorization webhook is. It holds the secret path, and no credential beside it.
func (c ControlPlane) kubeconfig() ([]byte, error) {
	if err := c.Endpoint.validate(); err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[Authorizer] = &clientcmdapi.Cluster{
		Server: c.Endpoint.URL + c.Endpoint.PathPrefix + PathAuthorize, TLSServerName: c.ServerName,
		CertificateAuthorityData: c.Endpoint.CABundle,
	}
	config.AuthInfos[Authorizer] = &clientcmdapi.AuthInfo{ClientCertificate: c.ClientCertificate, ClientKey: c.ClientKey}
	config.Contexts[Authorizer] = &clientcmdapi.Context{Cluster: Authorizer, AuthInfo: Authorizer}
	config.CurrentContext = Authorizer
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the authorization webhook: %w", err)
	}
	return text, nil
}

// staticManifests is the policy that guards what decides about admission, the policies and bindings that Kubernetes shows
// to no other policy among it. On the hosts of the control plane nobody can edit or delete it through the API.
func staticManifests(s Scope, version string) ([]byte, error) {
	governed, err := s.shards()
	if err != nil {
		return nil, fmt.Errorf("scope of the static manifests: %w", err)
	}
	configuration := rule{groups: []string{"admissionregistration.k8s.io"}, versions: []string{"*"}, resources: []string{"*/*"},
		operations: []admissionregistrationv1.OperationType{
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
		}}
	guard := floorPolicy{name: StaticGuard, rules: []rule{configuration}, checks: []check{{
		allowed: "false",
		refusal: refusal{reason: policy.EscalatesAuthority.String(), rule: "admission", next: "hand the manifest to a person of the platform team"},
	}}}
	var documents []string
	for _, object := range []Object{guard.policy(governed, version), guard.binding()} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("static %s: %w", *object.GetKind(), err)
		}
		documents = append(documents, string(text))
	}
	return []byte(strings.Join(documents, "---\n")), nil
}
