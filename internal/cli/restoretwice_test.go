package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestTwoRestorations: of two at once each says what is true, and neither leaves a file with keys behind that
// is not the former data file.
func TestTwoRestorations(t *testing.T) {
	data := storeFile(t)
	servingAt(t, append(fixed(t, "serve"), "--data", data)...)
	dir := t.TempDir()
	names := []string{"a", "b"}
	for _, name := range names {
		runOK(t, "", on(data, "client create "+name)...)
		runOK(t, "", on(data, "backup "+filepath.Join(dir, name+".db"))...)
	}
	holds := map[string][]string{"a": {"a"}, "b": {"a", "b"}}
	for range 3 {
		var mu sync.Mutex
		var restored []string
		var both sync.WaitGroup
		for _, name := range names {
			both.Go(func() {
				_, said, status := run(t, "", on(data, "restore "+filepath.Join(dir, name+".db")+" --yes")...)
				mu.Lock()
				defer mu.Unlock()
				if status == command.ExitOK {
					restored = append(restored, name)
				} else if strings.Contains(said, "returned to the old data file") {
					t.Errorf("%s says %q", name, said)
				}
			})
		}
		both.Wait()
		left, err := filepath.Glob(data + ".restore-*")
		check.OK(t, err)
		check.Equal(t, "prepared files", len(left), 0)
		ids := clientIDs(t, data)
		switch len(restored) {
		case 0:
			t.Errorf("neither is restored: %v", ids)
		case 1:
			check.Equal(t, "clients after "+restored[0], ids, holds[restored[0]])
		}
	}
}

// TestDataFileBesideAServerOfTheEnvironment: OAUTH_SERVER names another place than the data file that is found
// without it, so the file has to be named.
func TestDataFileBesideAServerOfTheEnvironment(t *testing.T) {
	data := storeFile(t)
	t.Chdir(filepath.Dir(data))
	check.OK(t, os.Rename(data, "oauth-server.db"))
	execute := func(args ...string) (said string, status int) {
		var out, errs bytes.Buffer
		c := &command.Env{In: strings.NewReader(""), Out: &out, ErrOut: &errs, Environ: []string{"OAUTH_SERVER=http://127.0.0.1:1"}}
		status = execute(t.Context(), c, args)
		return errs.String(), status
	}
	for _, args := range [][]string{{"backup", "b.db"}, {"restore", "b.db", "--yes"}} {
		said, status := execute(append(args, "--data", "oauth-server.db")...)
		check.Equal(t, said, status, command.ExitOK)
		said, status = execute(args...)
		if status != command.ExitUsage || !strings.Contains(said, "OAUTH_SERVER names http://127.0.0.1:1") {
			t.Errorf("%v: status %d: %s", args, status, said)
		}
	}
	said, status := execute("restore", "b.db", "--check")
	check.Equal(t, said, status, command.ExitOK)
}
