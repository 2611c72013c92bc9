// Package env runs a real Kubernetes control plane, and the manager as a real process beside it, for tests, the
// demo and benchmarks.
//
// Nothing is faked: etcd, kube-apiserver and kube-controller-manager are the binaries of KUBEBUILDER_ASSETS, or of
// bin/k8s in the repository when that variable is unset ("make controlplane" builds them). There is no scheduler and
// no kubelet, so a Pod stays Pending for ever, which is enough for everything that admission sees.
//
// Every process dies with the one that started it, whatever ends that one: see reaper.
package env
