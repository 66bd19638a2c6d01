//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// heavyFile makes a data file with one client that takes a while to copy.
func heavyFile(t *testing.T, client string) (path string) {
	t.Helper()
	path = storeFile(t)
	store, err := app.OpenStore(t.Context(), config.Store{Embedded: &config.Embedded{Path: path}})
	check.OK(t, err)
	for i := range 2 {
		check.OK(t, store.PutShared(t.Context(), fmt.Sprint("ballast", i), nil, make([]byte, 1<<20)))
	}
	check.OK(t, store.Close())
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
