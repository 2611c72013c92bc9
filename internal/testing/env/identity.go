package env

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// tokenSeconds outlives every test and a demo that is kept running for a working day.
const tokenSeconds = 24 * 60 * 60

// Admin is the configuration of a client in group system:masters. The caller owns the copy.
func (e *Env) Admin() *rest.Config { return rest.CopyConfig(e.admin) }

// User issues a client certificate for a person or component. RBAC decides what it may do.
func (e *Env) User(name string, groups ...string) (*rest.Config, error) {
	user, err := e.plane.AddUser(envtest.User{Name: name, Groups: groups}, e.connection())
	if err != nil {
		return nil, fmt.Errorf("client certificate of %s: %w", name, err)
	}
	return user.Config(), nil
}

// ServiceAccountToken asks the API server for a token, valid for 24 hours. With podName the token is bound to that Pod,
// as the kubelet's are: it carries the Pod's name and UID, and dies with it. Empty = bound to the ServiceAccount only.
func (e *Env) ServiceAccountToken(ctx context.Context, namespace, serviceAccount, podName string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	if podName != "" {
		pod, err := e.client.CoreV1().Pods(namespace).Get(ctx, podName, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("pod of the token: %w", err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: podName, UID: pod.UID}
	}
	answer, err := e.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, serviceAccount, err)
	}
	return answer.Status.Token, nil
}

// Token is the configuration of a client that holds a bearer token.
func (e *Env) Token(token string) *rest.Config {
	cfg := e.connection()
	cfg.BearerToken = token
	return cfg
}

// connection says where the API server is and carries no identity.
func (e *Env) connection() *rest.Config {
	cfg := rest.AnonymousClientConfig(e.admin)
	cfg.QPS, cfg.Burst = -1, 0 // no throttling by the client
	return cfg
}

// Kubeconfig writes a kubeconfig file and returns its path. name is the file's name and the user's within it. An empty
// namespace leaves the default one.
func (e *Env) Kubeconfig(name string, cfg *rest.Config, namespace string) (string, error) {
	const cluster = "stepbeyond-env"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData, InsecureSkipTLSVerify: cfg.Insecure,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token:                 cfg.BearerToken,
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	path := e.path("kubeconfigs", name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	return path, nil
}
