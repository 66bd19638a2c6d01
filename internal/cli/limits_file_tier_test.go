package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestLimitsFileWithTiers: a file makes a tier and gives it to clients in one change, whatever their order,
// and an undo takes both back.
func TestLimitsFileWithTiers(t *testing.T) {
	s := newLimitsServer(t)
	const file = `tiers:
  gold:
    user:
      - name: per-minute
        requests: 20
        window: 60s
    note: contract
policies:
  shop:
    tier: gold
overrides:
  shop ada:
    user:
      - name: per-minute
        requests: 2
        window: 60s
`
	s.write(file)
	s.limits(0, "apply -f FILE --yes")
	stdout, _ := s.limits(0, "get shop")
	has(t, stdout, "tier gold", "user ada", "2/60s")
	stdout, _ = s.limits(0, "export")
	check.Equal(t, "exported", withoutHeader(stdout), file)
	stdout, _ = s.limits(0, "apply -f FILE")
	has(t, stdout, "There is nothing to change.")
	made := s.version()

	s.write("policies:\n  shop:\n    tier: silver\n")
	_, stderr := s.limits(2, "apply -f FILE --yes")
	has(t, stderr, "silver", s.file+":3")
	check.Equal(t, "version after a file with a tier that there is not", s.version(), made)

	s.write("overrides:\n  shop ADA:\n    user:\n      - requests: 2\n        window: 60s\n        name: per-minute\n")
	s.limits(0, "apply -f FILE --yes")
	check.Equal(t, "version after a user in another form", s.version(), made)
	s.write(strings.Replace(file, "shop ada", "shop ADA", 1))
	stdout, _ = s.limits(0, "diff -f FILE --prune")
	check.Equal(t, "difference of a user in another form", stdout, "")
	_, override, _ := strings.Cut(file, "  shop ada")
	s.write(file + "  shop Ada" + override)
	_, stderr = s.limits(2, "diff -f FILE")
	has(t, stderr, "duplicates an entry that spells the name differently")

	s.write("{}\n")
	s.limits(0, "apply -f FILE --prune --yes")
	stdout, _ = s.limits(0, "export")
	check.Equal(t, "exported after all was removed", withoutHeader(stdout), "{}\n")
	s.limits(0, fmt.Sprintf("undo %d --yes", s.version()))
	stdout, _ = s.limits(0, "export")
	check.Equal(t, "exported after the undo", withoutHeader(stdout), file)

	s.limits(0, "set --tier gold --user 30/60s --for 2h --yes")
	stdout, _ = s.limits(0, "get --tier gold")
	has(t, stdout, "30/60s", "until")
	stdout, _ = s.limits(0, "export -f FILE")
	check.Equal(t, "output", stdout, "")
	text, err := os.ReadFile(s.file)
	check.OK(t, err)
	has(t, string(text), "# tiers/gold is temporary until ", "\n"+file)
}
