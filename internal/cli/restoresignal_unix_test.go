//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestHangupLeavesNoKeys: a terminal that is closed ends both commands, and they remove what they have made.
func TestHangupLeavesNoKeys(t *testing.T) {
	data := heavyFile(t, "old")
	backup := filepath.Join(t.TempDir(), "backup.db")
	runOK(t, "", on(data, "backup "+backup)...)
	for _, tt := range []struct{ at, prefix, args string }{
		{data, ".restore-", "restore " + backup + " --yes"},
		{backup, ".", "backup --force " + backup},
	} {
		p := launch(t, on(data, tt.args)...)
		awaitFile(t, tt.at, tt.prefix, p.done)
		check.OK(t, ignoreFinished(p.Process.Signal(syscall.SIGHUP)))
		<-p.ended
		left, err := filepath.Glob(tt.at + tt.prefix + "*")
		check.OK(t, err)
		if len(left) > 0 && !strings.Contains(left[0], ".before-restore-") {
			t.Errorf("%s leaves %v", tt.args, left)
		}
	}
}

// TestBackupToAFileOfAll: the shell makes the file, so the command can only warn.
func TestBackupToAFileOfAll(t *testing.T) {
	data := storeFile(t)
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o644: true} {
		out, err := os.OpenFile(filepath.Join(t.TempDir(), "backup.db"), os.O_CREATE|os.O_WRONLY, mode)
		check.OK(t, err)
		check.OK(t, out.Chmod(mode))
		var said strings.Builder
		c := &command.Env{In: strings.NewReader(""), Out: out, ErrOut: &said}
		check.Equal(t, "status", execute(t.Context(), c, on(data, "backup -")), command.ExitOK)
		check.Equal(t, fmt.Sprintf("warned of %s: %s", mode, said.String()), strings.Contains(said.String(), "umask 077"), warns)
		check.OK(t, out.Close())
	}
}
