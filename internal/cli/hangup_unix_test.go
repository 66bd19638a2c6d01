//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
)

// TestHangupWhileTheServerStarts: SIGHUP does not end a server that has not read its configuration file yet.
func TestHangupWhileTheServerStarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	check.OK(t, syscall.Mkfifo(file, 0o600))
	p := launch(t, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin-listen", "", "--data", storeFile(t))
	var f *os.File
	check.Eventually(t, "the server reads its configuration", func() (opened bool) {
		var err error
		f, err = os.OpenFile(file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	check.OK(t, p.Process.Signal(syscall.SIGHUP))
	_, err := f.WriteString("log: { level: debug }\n")
	check.OK(t, err)
	check.OK(t, f.Close())
	p.listening(t)
	check.Eventually(t, "it is looked at after the start", func() bool {
		return strings.Contains(p.log.String(), "no configuration file to reload") // a pipe is read once
	})
	p.stop(t)
}
