package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/testworld"
)

// on names the data file.
func on(data, args string) []string { return append(strings.Fields(args), "--data", data) }

// must runs a command that has to succeed.
func must(t *testing.T, args []string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, status := run(t, adaPassword, args...)
	if status != exitOK {
		t.Fatalf("%v: status %d: %s%s", args, status, stdout, stderr)
	}
	return stdout, stderr
}

// refused runs a command that must fail with what it says.
func refused(t *testing.T, says string, args []string) {
	t.Helper()
	stdout, stderr, status := run(t, "", args...)
	if status == exitOK || !strings.Contains(stderr, says) {
		t.Errorf("%v: status %d, want %q: %s%s", args, status, says, stdout, stderr)
	}
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

// serveAt starts a server at addresses that it finds again when it starts afresh.
func serveAt(t *testing.T, data string, args ...string) operated {
	t.Helper()
	clients, operators := testworld.FreeAddress(t), testworld.FreeAddress(t)
	p := launch(t, append([]string{"serve", "--data", data, "--listen", clients, "--admin-listen", operators}, args...)...)
	p.listening(t)
	return operated{p, "http://" + clients, "http://" + operators}
}

// TestBackup: of a file that no server has open, and through the server that has it.
func TestBackup(t *testing.T) {
	data := storeFile(t)
	must(t, on(data, "client create shop"))
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
	_, said := must(t, on(data, "backup "+filepath.Join(dir, "stopped.db")+" --force"))
	check.Equal(t, "it says where it works", said, "using the store "+data+" directly\n")
	serveAt(t, data)
	must(t, on(data, "client create second"))
	b := backUp("serving.db")
	check.Equal(t, "clients", b.Records["clients"], 2)
	check.Equal(t, "there is an event", b.Event != nil, true)
	stdout, stderr := must(t, on(data, "backup -"))
	piped := filepath.Join(dir, "piped.db")
	check.OK(t, os.WriteFile(piped, []byte(stdout), 0o600))
	if !strings.Contains(stderr, "which are not checked") {
		t.Errorf("it says %q", stderr)
	}
	var checked shownBackup
	runJSON(t, &checked, "", "restore", piped, "--check")
	check.Equal(t, "clients", checked.Records["clients"], 2)

	refused(t, "is there already", on(data, "backup "+piped))
	refused(t, "is the data file itself", on(data, "backup "+data+" --force"))
	refused(t, "no regular file", on(data, "backup "+dir+" --force"))
	must(t, on(data, "backup "+piped+" --force"))
	refused(t, "there is no data file", on(filepath.Join(dir, "none.db"), "backup x"))
	_, stderr, status := run(t, "", "backup", "x", "--mongodb-uri", "mongodb://h")
	if status != exitUsage || !strings.Contains(stderr, "mongodump") {
		t.Errorf("of a database: status %d: %s", status, stderr)
	}
	left, err := os.ReadDir(dir)
	check.OK(t, err)
	check.Equal(t, "files", len(left), 3)
}

// TestServerThatCannotBeAsked: it serves no operators, so the next step is to stop it.
func TestServerThatCannotBeAsked(t *testing.T) {
	data := storeFile(t)
	backup := filepath.Join(t.TempDir(), "b.db")
	must(t, on(data, "backup "+backup))
	launch(t, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "").listening(t)
	for _, args := range []string{"backup " + backup + " --force", "restore " + backup + " --yes"} {
		refused(t, "stop it first", on(data, args))
	}
	left, err := os.ReadDir(filepath.Dir(backup))
	check.OK(t, err)
	check.Equal(t, "files", len(left), 1)
}

// TestBackupIsInTheTrail: who made it, and why.
func TestBackupIsInTheTrail(t *testing.T) {
	data := storeFile(t)
	server := serveAt(t, data)
	var ops credentials
	runJSON(t, &ops, "", on(data, "client create ops --admin")...)
	must(t, on(data, "backup "+filepath.Join(t.TempDir(), "b.db")+" --reason nightly"))
	stdout, _ := must(t, []string{
		"limits", "audit", "--target", "store", "--server", server.operators, "--issuer", server.clients,
		"--token", askToken(t, server.clients, ops),
	})
	if !strings.Contains(stdout, whoami()+" (store)") || !strings.Contains(stdout, "backup store") || !strings.Contains(stdout, "nightly") {
		t.Errorf("the trail shows\n%s", stdout)
	}
}

// TestRestore: with no server, into a place where there is a file and where there is none.
func TestRestore(t *testing.T) {
	data := storeFile(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	must(t, on(data, "client create first"))
	must(t, on(data, "backup "+backup))
	must(t, on(data, "client create second"))
	_, stderr, status := run(t, "n\n", on(data, "restore "+backup)...)
	if status != exitFailed || !strings.Contains(stderr, "Continue? [y/N]") || !strings.Contains(stderr, "1 clients") {
		t.Errorf("not agreed: status %d: %s", status, stderr)
	}
	check.Equal(t, "clients", clientIDs(t, data), []string{"first", "second"})
	var done struct{ Former string }
	runJSON(t, &done, "", on(data, "restore "+backup+" --yes")...)
	check.Equal(t, "clients", clientIDs(t, data), []string{"first"})
	check.Equal(t, "clients of the former file", clientIDs(t, done.Former), []string{"first", "second"})

	elsewhere := filepath.Join(t.TempDir(), "new.db")
	for _, flag := range []string{"", " --yes"} {
		refused(t, "This makes a new one: the store "+elsewhere, on(elsewhere, "restore "+backup+flag))
		refused(t, "confirm the new one with --create", on(elsewhere, "restore "+backup+flag))
	}
	left, err := os.ReadDir(filepath.Dir(elsewhere))
	check.OK(t, err)
	check.Equal(t, "files", len(left), 0)
	stdout, _ := must(t, on(elsewhere, "restore "+backup+" --create --keep-sessions"))
	check.Equal(t, "output", stdout, "restored "+elsewhere+"\n")
	check.Equal(t, "clients", clientIDs(t, elsewhere), []string{"first"})

	link := filepath.Join(t.TempDir(), "link.db")
	check.OK(t, os.Symlink(data, link))
	must(t, on(link, "restore "+done.Former+" --yes"))
	check.Equal(t, "clients behind the link", clientIDs(t, data), []string{"first", "second"})

	refused(t, "is the data file itself", on(data, "restore "+data+" --yes"))
	content, err := os.ReadFile(backup)
	check.OK(t, err)
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	check.OK(t, os.WriteFile(damaged, content[:len(content)/2], 0o600))
	_, stderr, status = run(t, "", on(data, "restore "+damaged+" --yes")...)
	if status != exitFailed || !strings.Contains(stderr, "damaged") || strings.Contains(stderr, "restore it from a backup") {
		t.Errorf("of a damaged backup: status %d: %s", status, stderr)
	}
	check.OK(t, os.WriteFile(damaged, bytes.Repeat([]byte("x"), 20_000), 0o600))
	refused(t, "not a data file of oauth-server", on(data, "restore "+damaged+" --yes"))
	check.Equal(t, "clients", clientIDs(t, data), []string{"first", "second"})

	// A data file that is damaged is what a backup is for; what is none has to be moved away.
	check.OK(t, os.WriteFile(data, content[:5000], 0o600))
	must(t, on(data, "restore "+backup+" --yes"))
	check.Equal(t, "clients", clientIDs(t, data), []string{"first"})
	check.OK(t, os.WriteFile(data, bytes.Repeat([]byte{7}, 20_000), 0o600))
	refused(t, "move this away", on(data, "restore "+backup+" --yes --create"))
	check.OK(t, os.Truncate(data, 0))
	must(t, on(data, "restore "+backup+" --yes"))
	check.Equal(t, "clients", clientIDs(t, data), []string{"first"})
}

// TestRestoreWhileServing: the server starts afresh in its process with what was restored. What was issued
// before is worthless, unless it is to be kept.
func TestRestoreWhileServing(t *testing.T) {
	data := storeFile(t)
	server := serveAt(t, data)
	backup := filepath.Join(t.TempDir(), "backup.db")
	var ops credentials
	runJSON(t, &ops, "", on(data, "client create ops --admin")...)
	must(t, on(data, "backup "+backup))
	admin := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.operators+"/admin/v1/settings", nil)
		check.OK(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		check.OK(t, err)
		check.OK(t, res.Body.Close())
		return res.StatusCode
	}
	for _, tt := range []struct {
		flag string
		want int
	}{{"--keep-sessions", http.StatusOK}, {"", http.StatusUnauthorized}} {
		token := askToken(t, server.clients, ops)
		must(t, on(data, "client create later"))
		check.Equal(t, "status before", admin(token), http.StatusOK)
		stdout, _ := must(t, on(data, "restore "+backup+" --yes "+tt.flag))
		if !strings.Contains(stdout, ".before-restore-") {
			t.Errorf("it says %q", stdout)
		}
		check.Equal(t, "clients", clientIDs(t, data), []string{"ops"})
		check.Equal(t, "status with "+tt.flag, admin(token), tt.want)
		check.Equal(t, "status of a new token", admin(askToken(t, server.clients, ops)), http.StatusOK)
	}
	check.Equal(t, "the process still runs", server.ProcessState == nil, true)
	events, _ := must(t, []string{
		"limits", "audit", "-o", "json", "--target", "store", "--server", server.operators, "--issuer", server.clients,
		"--token", askToken(t, server.clients, ops),
	})
	var trail struct {
		Entries []struct {
			Action string
			After  map[string]string
		}
	}
	check.OK(t, json.Unmarshal([]byte(events), &trail))
	check.Equal(t, "the newest", trail.Entries[0].Action+" "+trail.Entries[0].After["sign_ins"], "restore ended")
}

// TestRestoreThatCannotBeServed: the server goes back to the former file, if it cannot start with the
// restored one.
func TestRestoreThatCannotBeServed(t *testing.T) {
	secretFile := func() string {
		path := filepath.Join(t.TempDir(), "secret")
		random := make([]byte, 32)
		_, _ = rand.Read(random) // never fails
		check.OK(t, os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(random)), 0o600))
		return path
	}
	other := storeFile(t)
	stopped := serveAt(t, other, "--keys-secret-file", secretFile())
	backup := filepath.Join(t.TempDir(), "backup.db")
	must(t, on(other, "backup "+backup))
	check.OK(t, stopped.Process.Kill())

	data := storeFile(t)
	server := serveAt(t, data, "--keys-secret-file", secretFile())
	var shop credentials
	runJSON(t, &shop, "", on(data, "client create shop")...)
	refused(t, "has put the former data file back", on(data, "restore "+backup+" --yes"))
	askToken(t, server.clients, shop)
	check.Equal(t, "clients", clientIDs(t, data), []string{"shop"})
	if !strings.Contains(server.log.String(), "putting the former one back") {
		t.Errorf("the log has\n%s", server.log.String())
	}
}
