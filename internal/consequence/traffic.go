package consequence

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// exposes tells when a Service is opened to what is outside of the cluster. old is nil for a new one.
func (l *look) exposes(old, now *corev1.Service) {
	if old == nil {
		old = &corev1.Service{}
	}
	if now.Spec.Type != old.Spec.Type {
		switch now.Spec.Type {
		case corev1.ServiceTypeLoadBalancer:
			from := "anybody who reaches the load balancer"
			if ranges := now.Spec.LoadBalancerSourceRanges; len(ranges) > 0 {
				from = few(ranges)
			}
			l.effect("a load balancer opens %s to clients outside of the cluster (%s)", ports(now), from)
		case corev1.ServiceTypeNodePort:
			l.effect("every node opens %s to whoever reaches the node", ports(now))
		case corev1.ServiceTypeExternalName:
			l.effect("clients of the Service are led out of the cluster, to %s", now.Spec.ExternalName)
		}
		l.losesAddress(old)
	}
	if ips := now.Spec.ExternalIPs; len(ips) > 0 && !slices.Equal(ips, old.Spec.ExternalIPs) {
		l.effect("traffic to %s is taken by the Service", few(ips))
	}
}

func ports(s *corev1.Service) string {
	list := make([]string, 0, len(s.Spec.Ports))
	for i := range s.Spec.Ports {
		list = append(list, string(s.Spec.Ports[i].Protocol)+" "+s.Spec.Ports[i].TargetPort.String())
	}
	return "its ports (" + few(list) + ")"
}

// few names at most maxNames of a list.
func few(list []string) string {
	if len(list) > maxNames {
		return strings.Join(list[:maxNames], ", ") + " and more"
	}
	return strings.Join(list, ", ")
}

func (l *look) losesAddress(s *corev1.Service) {
	for i := range s.Status.LoadBalancer.Ingress {
		at := s.Status.LoadBalancer.Ingress[i]
		l.effect("the external address %s%s is given up and may not come back", at.IP, at.Hostname)
	}
}

// rerouted tells where a Service led and where it will.
func (l *look) rerouted(ctx context.Context, old, now *corev1.Service) {
	if maps.Equal(old.Spec.Selector, now.Spec.Selector) {
		return
	}
	l.ledTo(ctx, old, "clients of the Service are led elsewhere")
	l.leadsTo(ctx, now)
}

// ledTo counts the addresses that a Service leads to, as the API server has them now.
func (l *look) ledTo(ctx context.Context, s *corev1.Service, then string) {
	//nolint:staticcheck // EndpointSlices have names that only a list finds; one get of the Endpoints says the same.
	endpoints := &corev1.Endpoints{}
	err := l.live.Get(ctx, client.ObjectKeyFromObject(s), endpoints)
	if client.IgnoreNotFound(err) != nil {
		l.effect("until now: where it leads could not be read (%s); %s", why(err), then)
		return
	}
	addresses := 0
	for i := range endpoints.Subsets {
		addresses += len(endpoints.Subsets[i].Addresses)
	}
	l.effect("until now it leads to %d ready addresses; %s", addresses, then)
}

// leadsTo names the Pods that a Service's selector finds.
func (l *look) leadsTo(ctx context.Context, s *corev1.Service) {
	if len(s.Spec.Selector) == 0 {
		if s.Spec.Type != corev1.ServiceTypeExternalName {
			l.effect("without a selector it leads to no Pod by itself")
		}
		return
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	if found, ok := l.podsThat(ctx, func(pod *corev1.Pod) bool { return selector.Matches(labels.Set(pod.Labels)) }); ok {
		l.effect("its selector finds %s", l.counted(found))
	}
}

// routes names the hosts of an Ingress and the Services behind them.
func (l *look) routes(fields map[string]any, how string) {
	ingress := as[networkingv1.Ingress](fields)
	if ingress == nil {
		return
	}
	if backend := ingress.Spec.DefaultBackend; backend != nil {
		l.effect("requests for any host from outside of the cluster %s %s", how, backendName(backend))
	}
	for i := range ingress.Spec.Rules {
		rule := &ingress.Spec.Rules[i]
		host := rule.Host
		if host == "" {
			host = "any host"
		}
		var behind []string
		if rule.HTTP != nil {
			for j := range rule.HTTP.Paths {
				if name := backendName(&rule.HTTP.Paths[j].Backend); !slices.Contains(behind, name) {
					behind = append(behind, name)
				}
			}
		}
		l.effect("requests for %s from outside of the cluster %s %s", host, how, few(behind))
	}
}

func backendName(b *networkingv1.IngressBackend) string {
	switch {
	case b.Service != nil:
		return "Service " + b.Service.Name
	case b.Resource != nil:
		return b.Resource.Kind + " " + b.Resource.Name
	default:
		return "nothing"
	}
}

// selects names the Pods that a NetworkPolicy is about.
func (l *look) selects(ctx context.Context, fields map[string]any, how string) {
	policy := as[networkingv1.NetworkPolicy](fields)
	if policy == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		return // the API server refuses it
	}
	if found, ok := l.podsThat(ctx, func(pod *corev1.Pod) bool { return selector.Matches(labels.Set(pod.Labels)) }); ok {
		l.effect("it %s %s", how, l.counted(found))
	}
}
