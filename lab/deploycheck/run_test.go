package deploycheck

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

var built struct {
	sync.Once
	dir, binary string
	err         error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(status)
}

// builtServer returns the path of the server's binary.
func builtServer(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "deploycheck-*"); built.err == nil { //nolint:usetesting // for all tests
			built.binary, built.err = servers.BuildServer(t.Context(), built.dir)
		}
	})
	check.OK(t, built.err)
	return built.binary
}

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
