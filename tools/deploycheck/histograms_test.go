package deploycheck

import (
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

// Without classic histograms the charts of latencies are empty. That the Prometheus of
// docker-compose.yml keeps them is a test of tools/cmd/demo-load.
func TestPodMonitorKeepsClassicHistograms(t *testing.T) {
	spec := manifest[monitoring.PodMonitor](t, "podmonitor.yaml").Spec
	if keep := spec.ScrapeClassicHistograms; keep == nil || !*keep {
		t.Error("podmonitor.yaml does not set scrapeClassicHistograms")
	}
}
