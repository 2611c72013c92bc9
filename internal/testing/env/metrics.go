package env

import (
	"context"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counter is the sum of a counter over all series of the manager that carry the given labels; a series that does not
// exist counts as 0.
func (m *Manager) Counter(ctx context.Context, name string, labels map[string]string) (float64, error) {
	return sumOf(ctx, m.metricsURL, name, labels)
}

// EtcdMetric is the value of a gauge or counter of etcd over all its series; 0 for one that it does not have.
func (e *Env) EtcdMetric(ctx context.Context, name string) (float64, error) {
	return sumOf(ctx, e.plane.ControlPlane.Etcd.URL.JoinPath("metrics").String(), name, nil)
}

func sumOf(ctx context.Context, url, name string, labels map[string]string) (float64, error) {
	var sum float64
	err := get(ctx, url, func(response *http.Response) (err error) {
		if sum, err = sumIn(response.Body, name, labels); err != nil {
			return fmt.Errorf("metrics of %s: %w", url, err)
		}
		return nil
	})
	return sum, err
}

// sumIn reads the text format of Prometheus.
func sumIn(text io.Reader, name string, labels map[string]string) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	var sum float64
	for _, metric := range families[name].GetMetric() {
		if carries(metric, labels) {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum, nil
}

func carries(metric *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, pair := range metric.GetLabel() {
		if want, ok := labels[pair.GetName()]; ok && want == pair.GetValue() {
			found++
		}
	}
	return found == len(labels)
}
