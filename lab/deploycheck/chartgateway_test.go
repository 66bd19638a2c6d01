package deploycheck

import (
	"testing"

	networking "k8s.io/api/networking/v1"

	"oauth-server/internal/check"
)

// The Ingress of a gateway serves its public URL, whatever the path.
func TestChartIngressServesTheGateway(t *testing.T) {
	rules := one[networking.Ingress](t, charted(t, chartValues["gateway"])).Spec.Rules
	check.Equal(t, "host", rules[0].Host, "login.example.com")
	check.Equal(t, "paths", len(rules[0].HTTP.Paths), 1)
	check.Equal(t, "path", rules[0].HTTP.Paths[0].Path, "/")
}
