package deploycheck

import (
	"os"
	"path/filepath"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

// run runs a command until the test ends, and waits until it listens on the address.
func run(t *testing.T, address string, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(process.AnyCore, t.TempDir(), filepath.Base(args[0]), args...)
	check.OK(t, err)
	t.Cleanup(func() {
		_ = p.Stop() // the test may have stopped it
		if text, err := os.ReadFile(p.Log()); t.Failed() && err == nil {
			t.Logf("%s:\n%s", args[0], text)
		}
	})
	check.OK(t, p.Await(t.Context(), process.Listens(address)))
	return p
}

// configured writes a file for a command, and returns its name.
func configured(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	check.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
