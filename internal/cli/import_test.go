package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/secret"
)

// TestImport: people and clients move here with the hashes that they have, in the store and through a
// running server.
func TestImport(t *testing.T) {
	data := storeFile(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("bobs old password"), bcrypt.MinCost)
	check.OK(t, err)
	secretOf := func(id string) string { return strings.Repeat(id+"-secret-", 4) }
	clients := func(ids ...string) (lines string) {
		for _, id := range ids {
			lines += `{"client_id": "` + id + `", "grant_types": ["client_credentials", "password"], "client_secret_hash": "{SHA256}` + secret.DigestOf(secretOf(id)).String() + `"}` + "\n"
		}
		return lines
	}
	users := func(names ...string) (lines string) {
		for _, name := range names {
			lines += `{"username": "` + name + `", "password_hash": "` + string(hash) + `"}` + "\n\n"
		}
		return lines
	}
	on := func(args ...string) []string { return append(args, "--data", data) }
	file := filepath.Join(filepath.Dir(data), "users.jsonl")
	check.OK(t, os.WriteFile(file, []byte("\ufeff"+users("Bob", "carol")), 0o600)) // as some editors write it
	for _, step := range []struct {
		in   string
		args []string
		says string
	}{
		{clients("shop"), []string{"client", "import", "-"}, "imported 1 client\n"},
		{"", []string{"user", "import", file, "--check"}, "the file is valid: 2 users\n"},
		{"", []string{"user", "import", file}, "imported 2 users"},
	} {
		has(t, runOK(t, step.in, on(step.args...)...), step.says)
	}
	stdout, _, _ := run(t, "", on("user", "show", "bob")...)
	check.Equal(t, "the kind is shown, and not the hash", strings.Contains(stdout, "bcrypt") && !strings.Contains(stdout, "$2a"), true)

	server := serving(t, "serve", "--data", data)
	runOK(t, clients("app"), on("client", "import", "-")...)
	runOK(t, users("dora"), on("user", "import", "-")...)
	for _, id := range []string{"shop", "app"} {
		askToken(t, server.clients, credentials{ClientID: id, ClientSecret: secretOf(id)})
	}
	for _, name := range []string{"bob", "dora"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.clients+"/token",
			strings.NewReader("grant_type=password&password=bobs+old+password&username="+name))
		check.OK(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth("app", secretOf("app"))
		res, err := http.DefaultClient.Do(req)
		check.OK(t, err)
		check.OK(t, res.Body.Close())
		check.Equal(t, name+" signs in", res.StatusCode, http.StatusOK)
	}
	stdout, _, _ = run(t, "", on("user", "show", "bob")...)
	check.Equal(t, "the hash is ours now", strings.Contains(stdout, "argon2id"), true)
}

// TestImportOfBadLines: every problem has its line, and nothing is imported unless that is wanted.
func TestImportOfBadLines(t *testing.T) {
	data := storeFile(t)
	on := func(args ...string) []string { return append(args, "--data", data) }
	runJSON(t, &credentials{}, "", on("client", "create", "taken")...)
	good := strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	in := strings.Join([]string{
		`{"username": "ada", "password_hash": "$pbkdf2-sha256$i=1000$` + good + `"}`,
		`{"username": "ADA", "password_hash": "$pbkdf2-sha256$i=1000$` + good + `"}`,
		`{"username": "a b", "password_hash": "secret", "operator": "all", "x": 1}`,
		`{"username": "taken", "password_hash": "$pbkdf2-sha256$i=1000$` + good + `"}`,
		`not JSON`,
		`{"username": "eve", "password_hash": "$pbkdf2-sha256$i=90000000$` + good + `"}`,
	}, "\n")
	says := []string{
		"line 2: line 1 has the same name", "line 3: username: ", "line 3: password_hash: neither", "line 3: operator: ", "line 3: x: ",
		"line 4: the client already exists", "line 5, column 2: ", "line 6: password_hash: 90000000 iterations",
		"5 of 6 lines have problems\n",
	}
	listed := func() (n int) {
		var users []struct{ Username string }
		runJSON(t, &users, "", on("user", "list")...)
		return len(users)
	}
	for _, tt := range []struct {
		flag string
		want int
	}{{"--check", 0}, {"", 0}, {"--partial", 1}} {
		has(t, runFails(t, command.ExitFailed, "", in, strings.Fields(strings.Join(on("user", "import", "-", tt.flag), " "))...), says...)
		check.Equal(t, tt.flag+" users", listed(), tt.want)
	}
	_, stderr, _ := run(t, `{"client_id": "x"}`+"\n"+`{"client_id": "y", "client_secret_hash": "$2b$10$abc"}`+"\n"+`{"client_id": "z", "client_secret": "s"}`, on("client", "import", "-")...)
	has(t, stderr, "line 1: client_secret_hash: is missing", "line 2: client_secret_hash: must be a SHA-256", "line 3: client_secret: ")
}

// TestImportWithoutAnyLineInOrder does not offer --partial, which would import nothing.
func TestImportWithoutAnyLineInOrder(t *testing.T) {
	data := storeFile(t)
	for _, flag := range []string{"--create", "--partial"} {
		_, stderr, status := run(t, "{}\n", "user", "import", "-", flag, "--data", data)
		if status != command.ExitFailed || strings.Contains(stderr, "with --partial") || !strings.Contains(stderr, "Fix the lines: none is valid.") {
			t.Errorf("%s: status %d: %s", flag, status, stderr)
		}
	}
}
