package rotation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of one replica:
//
//	stepbeyond_certificate_expiry_timestamp_seconds{certificate="authority"|"leaf"}  Unix time of the end of life
//	stepbeyond_installation_problem                                                  1 while the Secret cannot be read or used
func (k *Keeper) Metrics() []prometheus.Collector {
	expiry := func(certificate string, end func(*Serving) time.Time) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "stepbeyond_certificate_expiry_timestamp_seconds",
			Help:        "When the certificate expires that this replica serves (leaf), and the one that signed it (authority), in seconds since the epoch.",
			ConstLabels: prometheus.Labels{"certificate": certificate},
		}, func() float64 { return float64(end(k.Current()).Unix()) })
	}
	return []prometheus.Collector{
		expiry("authority", func(s *Serving) time.Time { return s.Installation.Current.Authority.NotAfter() }),
		expiry("leaf", func(s *Serving) time.Time { return s.Leaf.Leaf.NotAfter }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "stepbeyond_installation_problem",
			Help: "1 while this replica cannot read or use the Secret stepbeyond-installation, and serves what it read before; 0 otherwise.",
		}, func() float64 {
			if k.Problem() != nil {
				return 1
			}
			return 0
		}),
	}
}
