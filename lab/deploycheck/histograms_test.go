package deploycheck

import (
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

// Without classic histograms the charts of latencies are empty. That the Prometheus of
// docker-compose.yml keeps them is a test of lab/cmd/demo-load.
func TestPodMonitorKeepsClassicHistograms(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			for _, m := range every[monitoring.PodMonitor](all) {
				if keep := m.Spec.ScrapeClassicHistograms; keep == nil || !*keep {
					t.Errorf("%s does not set scrapeClassicHistograms", m.Name)
				}
			}
		})
	}
}
