//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// heavyFile makes a data file with one client that takes a while to copy.
func heavyFile(t *testing.T, client string) (path string) {
	t.Helper()
	path = storeFile(t)
	inStore(t, path, func(s app.Store) {
		for i := range 2 {
			check.OK(t, s.PutShared(t.Context(), fmt.Sprint("ballast", i), nil, make([]byte, 1<<20)))
		}
	})
	runOK(t, "", on(path, "client create "+client)...)
	return path
}

// awaitFile waits for a file of that prefix beside the data file, or for the end of the process that makes it: on a busy
// machine that may come and go between two looks.
func awaitFile(t *testing.T, data, prefix string, ended chan error) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		entries, err := os.ReadDir(filepath.Dir(data))
		check.OK(t, err)
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), filepath.Base(data)+prefix) }) {
			return
		}
		select {
		case err := <-ended:
			t.Logf("it ended first: %v", err)
			ended <- err // for who asks for its status
			return
		case <-deadline:
			t.Fatalf("there is no file %s beside the data file", prefix)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestRestoreKilled: at whatever moment the command is killed, the data file is the former one or the new
// one, as a whole, and the next attempt succeeds.
func TestRestoreKilled(t *testing.T) {
	backup := heavyFile(t, "new")
	outcomes := map[string]int{}
	for _, moment := range []string{"", ".restore-", ".before-restore-"} {
		data := heavyFile(t, "old")
		p := launch(t, on(data, "restore "+backup+" --yes")...)
		awaitFile(t, data, moment, p.done)
		check.OK(t, ignoreFinished(p.Process.Kill()))
		<-p.ended
		_, err := app.InspectDataFile(t.Context(), data)
		check.OK(t, err)
		ids := clientIDs(t, data)
		outcomes[strings.Join(ids, " ")]++
		runOK(t, "", on(data, "restore "+backup+" --yes")...)
		check.Equal(t, "clients in the end", clientIDs(t, data), []string{"new"})
	}
	for ids := range outcomes {
		if ids != "old" && ids != "new" {
			t.Errorf("a data file has the clients %q", ids)
		}
	}
	t.Logf("outcomes: %v", outcomes)
}

// TestRestoreKilledServer: the same for the server that holds the file.
func TestRestoreKilledServer(t *testing.T) {
	backup := heavyFile(t, "new")
	for _, moment := range []string{".restore-", ".before-restore-"} {
		data := heavyFile(t, "old")
		server := launchOperated(t, "serve", "--data", data)
		restore := launch(t, on(data, "restore "+backup+" --yes --wait 1s")...)
		awaitFile(t, data, moment, restore.done)
		check.OK(t, server.Process.Kill())
		<-server.ended
		restore.status(t)
		if ids := clientIDs(t, data); !slices.Equal(ids, []string{"old"}) && !slices.Equal(ids, []string{"new"}) {
			t.Errorf("after a kill at %s the clients are %q", moment, ids)
		}
		serving(t, "serve", "--data", data).stop(t)
	}
}

// ignoreFinished returns no error for a process that has ended.
func ignoreFinished(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

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
