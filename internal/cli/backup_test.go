package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
)

// fixed is a command line with addresses that are free, and kept over a restart.
func fixed(t *testing.T, command string) []string {
	t.Helper()
	return []string{command, "--listen", testworld.FreeAddress(t), "--admin-listen", testworld.FreeAddress(t)}
}

// clientIDs are the clients in a data file, as its registry shows them.
func clientIDs(t *testing.T, data string) (ids []string) {
	t.Helper()
	var list []struct {
		ID string `json:"client_id"`
	}
	runJSON(t, &list, "", on(data, "client list")...)
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestBackup: of a file that no server has open, and through the server that holds it.
func TestBackup(t *testing.T) {
	data := storeFile(t)
	runOK(t, "", on(data, "client create shop")...)
	dir := t.TempDir()
	backUp := func(name string) shownBackup {
		t.Helper()
		var b shownBackup
		runJSON(t, &b, "", on(data, "backup "+filepath.Join(dir, name))...)
		info, err := os.Stat(filepath.Join(dir, name))
		check.OK(t, err)
		check.Equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
		check.Equal(t, "size", info.Size(), b.Bytes)
		return b
	}
	check.Equal(t, "clients", backUp("stopped.db").Records["clients"], 1)
	_, said, status := run(t, "", on(data, "backup "+filepath.Join(dir, "stopped.db")+" --force")...)
	check.Equal(t, "status", status, command.ExitOK)
	check.Equal(t, "it says where it works", said, "using the store "+data+" directly\n")
	serving(t, "serve", "--data", data)
	runOK(t, "", on(data, "client create second")...)
	b := backUp("serving.db")
	check.Equal(t, "clients", b.Records["clients"], 2)
	check.Equal(t, "there is an event", b.Event != nil, true)
	stdout, stderr, _ := run(t, "", on(data, "backup -")...)
	piped := filepath.Join(dir, "piped.db")
	check.OK(t, os.WriteFile(piped, []byte(stdout), 0o600))
	has(t, stderr, "check the backup with: oauth-server restore --check")
	var checked shownBackup
	runJSON(t, &checked, "", "restore", piped, "--check")
	check.Equal(t, "clients", checked.Records["clients"], 2)

	runFails(t, command.ExitFailed, "already exists", "", on(data, "backup "+piped)...)
	runFails(t, command.ExitUsage, "is the data file itself", "", on(data, "backup "+data+" --force")...)
	runFails(t, command.ExitUsage, "not a regular file", "", on(data, "backup "+dir+" --force")...)
	runOK(t, "", on(data, "backup "+piped+" --force")...)
	runFails(t, command.ExitFailed, "none.db does not exist", "", on(filepath.Join(dir, "none.db"), "backup x")...)
	runFails(t, command.ExitUsage, "mongodump", "", "backup", "x", "--mongodb-uri", "mongodb://h")
	left, err := os.ReadDir(dir)
	check.OK(t, err)
	check.Equal(t, "files", len(left), 3)
}

// TestServerThatCannotBeAsked: the server has no admin API, so the error suggests stopping it.
func TestServerThatCannotBeAsked(t *testing.T) {
	data := storeFile(t)
	backup := filepath.Join(t.TempDir(), "b.db")
	runOK(t, "", on(data, "backup "+backup)...)
	servingAt(t, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "")
	for _, args := range []string{"backup " + backup + " --force", "restore " + backup + " --yes"} {
		runFails(t, command.ExitFailed, "stop it first", "", on(data, args)...)
	}
	left, err := os.ReadDir(filepath.Dir(backup))
	check.OK(t, err)
	check.Equal(t, "files", len(left), 1)
}

// TestBackupIsInTheTrail: who made it, and why.
func TestBackupIsInTheTrail(t *testing.T) {
	s := newManaged(t)
	runOK(t, "", on(s.data, "backup "+filepath.Join(t.TempDir(), "b.db")+" --reason nightly")...)
	s.shows("audit --target store", connect.Whoami()+" (store)", "backup store", "nightly")
}

// TestRestore: without a server, over an existing file and into an empty place.
func TestRestore(t *testing.T) {
	data := storeFile(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	runOK(t, "", on(data, "client create first")...)
	runOK(t, "", on(data, "backup "+backup)...)
	runOK(t, "", on(data, "client create second")...)
	has(t, runFails(t, command.ExitFailed, "Continue? [y/N]", "n\n", on(data, "restore "+backup)...), "1 client,")
	check.Equal(t, "clients", clientIDs(t, data), []string{"first", "second"})
	var done struct{ Former string }
	runJSON(t, &done, "", on(data, "restore "+backup+" --yes")...)
	check.Equal(t, "clients", clientIDs(t, data), []string{"first"})
	check.Equal(t, "clients of the former file", clientIDs(t, done.Former), []string{"first", "second"})

	elsewhere := filepath.Join(t.TempDir(), "new.db")
	for _, flag := range []string{"", " --yes"} {
		runFails(t, command.ExitFailed, "This creates the store "+elsewhere, "", on(elsewhere, "restore "+backup+flag)...)
		runFails(t, command.ExitFailed, "confirm with --create", "", on(elsewhere, "restore "+backup+flag)...)
	}
	left, err := os.ReadDir(filepath.Dir(elsewhere))
	check.OK(t, err)
	check.Equal(t, "files", len(left), 0)
	stdout := runOK(t, "", on(elsewhere, "restore "+backup+" --create --keep-sessions")...)
	check.Equal(t, "output", stdout, "restored "+elsewhere+"\n")
	check.Equal(t, "clients", clientIDs(t, elsewhere), []string{"first"})

	link := filepath.Join(t.TempDir(), "link.db")
	check.OK(t, os.Symlink(data, link))
	runOK(t, "", on(link, "restore "+done.Former+" --yes")...)
	check.Equal(t, "clients behind the link", clientIDs(t, data), []string{"first", "second"})

	runFails(t, command.ExitUsage, "is the data file itself", "", on(data, "restore "+data+" --yes")...)
	content, err := os.ReadFile(backup)
	check.OK(t, err)
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	check.OK(t, os.WriteFile(damaged, content[:len(content)/2], 0o600))
	hasNot(t, runFails(t, command.ExitFailed, "damaged", "", on(data, "restore "+damaged+" --yes")...), "restore it from a backup")
	check.OK(t, os.WriteFile(damaged, bytes.Repeat([]byte("x"), 20_000), 0o600))
	runFails(t, command.ExitFailed, "not a data file of oauth-server", "", on(data, "restore "+damaged+" --yes")...)
	check.Equal(t, "clients", clientIDs(t, data), []string{"first", "second"})

	// A damaged data file is replaced, because backups exist for that. A file of another kind has
	// to be moved away.
	check.OK(t, os.WriteFile(data, content[:5000], 0o600))
	runOK(t, "", on(data, "restore "+backup+" --yes")...)
	check.Equal(t, "clients", clientIDs(t, data), []string{"first"})
	check.OK(t, os.WriteFile(data, bytes.Repeat([]byte{7}, 20_000), 0o600))
	runFails(t, command.ExitFailed, "move this file away", "", on(data, "restore "+backup+" --yes --create")...)
	check.OK(t, os.Truncate(data, 0))
	runOK(t, "", on(data, "restore "+backup+" --yes")...)
	check.Equal(t, "clients", clientIDs(t, data), []string{"first"})
}

// TestRestoreWhileServing: the server restarts in its process with the restored file. Tokens issued
// before are invalid, unless they are to be kept.
func TestRestoreWhileServing(t *testing.T) {
	data := storeFile(t)
	server := servingAt(t, append(fixed(t, "serve"), "--data", data)...)
	backup := filepath.Join(t.TempDir(), "backup.db")
	ops := newClient(t, "ops --admin", "--data", data)
	runOK(t, "", on(data, "backup "+backup)...)
	admin := func(token string) int { return adminStatus(t, server.operators, token) }
	for _, tt := range []struct {
		flag string
		want int
	}{{"--keep-sessions", http.StatusOK}, {"", http.StatusUnauthorized}} {
		token := askToken(t, server.clients, ops)
		runOK(t, "", on(data, "client create later")...)
		check.Equal(t, "status before", admin(token), http.StatusOK)
		stdout := runOK(t, "", on(data, "restore "+backup+" --yes "+tt.flag)...)
		has(t, stdout, ".before-restore-")
		check.Equal(t, "clients", clientIDs(t, data), []string{"ops"})
		check.Equal(t, "status with "+tt.flag, admin(token), tt.want)
		check.Equal(t, "status of a new token", admin(askToken(t, server.clients, ops)), http.StatusOK)
	}
	var trail struct {
		Entries []struct {
			Action string
			After  map[string]string
		}
	}
	runJSON(t, &trail, "", "limits", "audit", "--target", "store", "--server", server.operators, "--token", askToken(t, server.clients, ops))
	check.Equal(t, "the newest", trail.Entries[0].Action+" "+trail.Entries[0].After["sign_ins"], "restore ended")
}

// TestRestoreThatCannotBeServed: the server goes back to the former file if it cannot start with
// the restored one.
func TestRestoreThatCannotBeServed(t *testing.T) {
	other := storeFile(t)
	stopped := serving(t, "serve", "--data", other, "--keys-secret-file", keyFile(t, otherSecret))
	backup := filepath.Join(t.TempDir(), "backup.db")
	runOK(t, "", on(other, "backup "+backup)...)
	stopped.stop(t)

	data := storeFile(t)
	server := servingAt(t, append(fixed(t, "serve"), "--data", data, "--keys-secret-file", keyFile(t, keysSecret))...)
	shop := newClient(t, "shop", "--data", data)
	runFails(t, command.ExitFailed, "returned to the old data file", "", on(data, "restore "+backup+" --yes")...)
	askToken(t, server.clients, shop)
	check.Equal(t, "clients", clientIDs(t, data), []string{"shop"})
	has(t, server.log.String(), "returning to the old one")
}

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
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"backup b.db --data oauth-server.db", command.ExitOK, ""},
		{"backup b.db", command.ExitUsage, "OAUTH_SERVER names http://127.0.0.1:1"},
		{"restore b.db --yes --data oauth-server.db", command.ExitOK, ""},
		{"restore b.db --yes", command.ExitUsage, "OAUTH_SERVER names http://127.0.0.1:1"},
		{"restore b.db --check", command.ExitOK, ""},
	} {
		_, stderr, status := runWith(t, []string{"OAUTH_SERVER=http://127.0.0.1:1"}, "", strings.Fields(tt.args)...)
		check.Equal(t, tt.args+": "+stderr, status, tt.status)
		has(t, stderr, tt.says)
	}
}
