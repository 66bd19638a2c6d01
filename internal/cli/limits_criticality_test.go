package cli

import (
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestCriticalityOfARunningServer: it is set, shown, exported, compared, applied and undone.
func TestCriticalityOfARunningServer(t *testing.T) {
	t.Parallel()
	s := newLimitsServer(t)
	shows := func(args string, parts ...string) {
		t.Helper()
		stdout, _ := s.limits(0, args)
		has(t, table(stdout), parts...)
	}
	shows("get", "criticality - configuration file\n")
	shows("get shop", "criticality - all clients\n")
	s.limits(0, "set --criticality sheddable_plus --yes")
	s.limits(0, "set --tier gold --criticality critical --yes")
	s.limits(0, "set shop --tier gold --yes")
	s.limits(0, "trust shop on --yes")
	shows("get", "criticality sheddable_plus changed here\n")
	shows("get batch", "criticality sheddable_plus all clients\n")
	shows("get shop", "trusted yes changed here\n", "criticality critical tier gold\n")
	s.limits(0, "set shop --criticality critical_plus --for 1h --yes")
	shows("get shop", "criticality critical_plus changed here\n", "until ")
	s.limits(0, "unset shop --field criticality --yes")
	s.limits(0, "set batch --criticality sheddable --note low --yes")
	shows("audit --limit 1", "policies/batch criticality sheddable; note low\n")
	stdout, _ := s.limits(0, "export")
	check.Equal(t, "the file", withoutHeader(stdout), `settings:
  default:
    criticality: sheddable_plus
tiers:
  gold:
    criticality: critical
policies:
  batch:
    criticality: sheddable
    note: low
  shop:
    tier: gold
    trusted: true
`)
	s.limits(0, fmt.Sprintf("undo %d --yes", s.version()))
	shows("get batch", "criticality sheddable_plus all clients\n")
	s.write(strings.Replace(stdout, "criticality: critical\n", "criticality: critical_plus\n", 1))
	stdout, _ = s.limits(1, "diff -f FILE")
	has(t, table(stdout), "criticality critical -> critical_plus", "criticality sheddable; note low\n")
	s.limits(0, "apply -f FILE --yes")
	shows("get shop", "criticality critical_plus tier gold\n")
	shows("get batch", "criticality sheddable changed here\n")
	s.write("policies:\n  batch: {criticality: high}\n")
	_, stderr := s.limits(2, "apply -f FILE --yes")
	has(t, stderr, `policies.batch.criticality: "high" is not one of "critical_plus", "critical", "sheddable_plus", "sheddable"`, ":2)")
}

// TestCriticalityOfACandidate: it comes into force when the candidate is promoted.
func TestCriticalityOfACandidate(t *testing.T) {
	t.Parallel()
	s := newLimitsServer(t)
	s.limits(0, "candidate set shop --limit 5/60s --criticality critical")
	stdout, _ := s.limits(0, "get shop --candidate")
	has(t, table(stdout), "criticality critical, when it is promoted\n")
	stdout, _ = s.limits(0, "get shop")
	has(t, table(stdout), "criticality - all clients\n")
	s.limits(0, "candidate promote shop --yes")
	stdout, _ = s.limits(0, "get shop")
	has(t, table(stdout), "criticality critical changed here\n")
}
