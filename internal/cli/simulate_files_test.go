package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestSimulateReport: --report writes a page that has the same as the answer, before --top cuts it.
func TestSimulateReport(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": burst(3, "shop", "ada") + strings.TrimPrefix(burst(2, "billing", "bob"), "time,client,user,grant\n")})
	stdout := runOK(t, "", "simulate", "log.csv", "--top", "1", "--limit", "2/60s", "--report", "out.html")
	check.Equal(t, stdout, strings.Contains(stdout, "1 client is left out here."), true)
	page, err := os.ReadFile("out.html")
	check.OK(t, err)
	for _, want := range []string{"shop", "billing", "2/60s", "Requests over time", "Limits compared"} {
		check.Equal(t, want+" in the page", bytes.Contains(page, []byte(want)), true)
	}
}

// TestSimulateFilesCannotBeWritten: it is said before the long work, and nothing is left behind.
func TestSimulateFilesCannotBeWritten(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": burst(3, "shop", "ada"), "limits.yaml": "{}\n", "old.html": ""})
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"log.csv --report none/out.html", command.ExitFailed, "--report: open none/out.html: no such file"},
		{"log.csv --target 50% --write log.csv", command.ExitUsage, "--write: refusing to overwrite log.csv: it is an input; name another file"},
		{"log.csv --target 50% --write ./log.csv", command.ExitUsage, "--write: refusing to overwrite ./log.csv: it is an input"},
		{"log.csv --policies limits.yaml --target 50% --write limits.yaml", command.ExitUsage, "--write: refusing to overwrite limits.yaml: it is an input"},
		{"log.csv --target 50% --write old.html --report old.html", command.ExitUsage, "--report: refusing to overwrite old.html: it is also the file of --write"},
		{"log.csv --report log.csv", command.ExitUsage, "--report: log.csv does not end with .html or .htm"},
		{"log.csv --target 50% --write none/out.yaml --report out.html", command.ExitFailed, "--write: open none/out.yaml: no such file"},
	} {
		stdout, stderr, status := run(t, "", append([]string{"simulate"}, strings.Fields(tt.args)...)...)
		check.Equal(t, tt.args, status, tt.status)
		check.Equal(t, tt.args, stdout, "")
		check.Equal(t, stderr, strings.Contains(stderr, tt.want), true)
	}
	left, err := os.ReadDir(".")
	check.OK(t, err)
	check.Equal(t, "files", len(left), 3)
	log, err := os.ReadFile("log.csv")
	check.OK(t, err)
	check.Equal(t, "the log", string(log), burst(3, "shop", "ada"))
}
