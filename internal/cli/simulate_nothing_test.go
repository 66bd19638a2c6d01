package cli

import (
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestSimulateNothingToFind: where no limit denies anything there is no lowest one, and the file of an earlier run stays.
func TestSimulateNothingToFind(t *testing.T) {
	const before = "settings: {}\n"
	inTemp(t, map[string]string{
		"failed.csv":  "time,client,user,status\n2026-11-16T09:00:00Z,shop,ada,401\n",
		"log.csv":     burst(3, "shop", "ada"),
		"trusts.yaml": "policies: { shop: { trusted: true } }\n",
		"found.yaml":  before,
	})
	for _, args := range []string{"failed.csv", "log.csv --policies trusts.yaml", "log.csv --policies trusts.yaml --of requests"} {
		stdout, stderr, status := run(t, "", append([]string{"simulate", "--target", "99%", "--write", "found.yaml"}, strings.Fields(args)...)...)
		check.Equal(t, args+": status", status, command.ExitFailed)
		has(t, stderr, "no requests to find a limit for")
		has(t, stdout, "shop")
		text, err := os.ReadFile("found.yaml")
		check.OK(t, err)
		check.Equal(t, args+": the file", string(text), before)
	}
}

// TestLongNamesAreShortened: a table stays readable.
func TestLongNamesAreShortened(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": burst(3, "begins-"+strings.Repeat("x", 500)+"-ends", "ada")})
	stdout, _, _ := run(t, "", "simulate", "log.csv")
	has(t, stdout, "begins-xxx", "xxx-ends ", "…")
	if strings.Contains(stdout, strings.Repeat("x", 100)) {
		t.Error(stdout)
	}
}
