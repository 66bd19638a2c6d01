package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/overload/hashing"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/bolt"
)

// A secret that was made elsewhere is the client's, is not shown, and can be given again: what
// registers a client on its own may run twice.
func TestClientCreateWithAGivenSecret(t *testing.T) {
	data, file := storeFile(t), filepath.Join(t.TempDir(), "secret")
	shop := credentials{ClientID: "shop", ClientSecret: "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA="}
	check.OK(t, os.WriteFile(file, []byte(shop.ClientSecret+"\n"), 0o600))
	create := func(args string) []string { return on(data, "client create --secret-file "+file+" "+args) }
	for range 2 {
		stdout, stderr, _ := run(t, "", create("shop")...)
		has(t, stdout, "shop")
		hasNot(t, stdout+stderr, shop.ClientSecret)
	}
	server := serving(t, "serve", "--data", data)
	askToken(t, server.clients, shop)
	server.stop(t)

	check.OK(t, os.WriteFile(file, []byte(strings.ToLower(shop.ClientSecret)), 0o600))
	runFails(t, command.ExitFailed, "another secret", "", create("shop")...)
	runFails(t, command.ExitUsage, "public", "", create("app --public --redirect-uri http://127.0.0.1/")...)
	check.OK(t, os.WriteFile(file, []byte("hunter2"), 0o600))
	hasNot(t, runFails(t, command.ExitUsage, "openssl rand", "", create("web")...), "hunter2")
	check.OK(t, os.Remove(file))
	runFails(t, command.ExitFailed, "no such file", "", create("web")...)
}

// TestClientLabels in the data file, and at the server that holds it.
func TestClientLabels(t *testing.T) {
	for _, place := range []string{"store", "server"} {
		t.Run(place, func(t *testing.T) {
			data := storeFile(t)
			if place == "server" {
				serving(t, "serve", "--data", data)
			}
			testClientLabels(t, func(args string) []string { return on(data, args) })
		})
	}
}

func testClientLabels(t *testing.T, on func(args string) []string) {
	t.Helper()
	runOK(t, "", on("client create shop --label team=payments --label zone=a")...)
	runOK(t, "", on("client create plain")...)
	const moved = `{"client_id": "moved", "client_secret_hash": "abababababababababababababababababababababababababababababababab", "labels": {"team": "payments"}}`
	runOK(t, moved, on("client import -")...)

	type labelled struct {
		ClientID string            `json:"client_id"`
		Labels   map[string]string `json:"labels"`
	}
	for args, want := range map[string]map[string]string{
		"shop --label zone=b --label note=":                              {"team": "payments", "zone": "b", "note": ""},
		"plain --label b=2 --remove-label gone --label c=3 --name Plain": {"b": "2", "c": "3"},
	} {
		var changed labelled
		runJSON(t, &changed, "", on("client update "+args)...)
		check.Equal(t, args, changed.Labels, want)
	}
	runOK(t, "", on("client update plain --remove-label b --remove-label c")...)
	has(t, table(runOK(t, "", on("client update shop --remove-label note")...)), "labels team=payments zone=b\n")
	has(t, table(runOK(t, "", on("client show shop")...)), "labels team=payments zone=b\n")

	for filter, want := range map[string]string{
		"": "moved plain shop", " --label team": "moved shop", " --label team=payments --label zone=b": "shop",
		" --label zone=a": "", " --label team --prefix m": "moved",
	} {
		var list []labelled
		runJSON(t, &list, "", on("client list"+filter)...)
		ids := []string{}
		for _, c := range list {
			ids = append(ids, c.ClientID)
		}
		check.Equal(t, filter, strings.Join(ids, " "), want)
	}
	text := table(runOK(t, "", on("client list --label zone")...))
	check.Equal(t, "list", regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllString(text, "NOW"),
		"CLIENT ID KIND GRANTS SCOPES CREATED LABELS\nshop confidential client_credentials - NOW team=payments zone=b\n")
}

func TestInvalidLabelsAreUsageErrors(t *testing.T) {
	for args, says := range map[string]string{
		"client create shop --label team":                  `labels.team: "team" is not name=value`,
		"client create shop --label team=a --label team=b": "labels.team: is a duplicate",
		"client update shop --label Team=a":                `the name "Team" must have`,
		"client update shop --remove-label team=a":         "give the name of the label, without a value",
		"client list --label team=a/b":                     "--label: the value",
		"client list --label=":                             "--label: the name",
	} {
		runFails(t, command.ExitUsage, says, "", append(strings.Fields(args), "--data", "no-such.db")...)
	}
}

// namesWhatStays deletes a client, which must print these commands that remove what stays of it.
func namesWhatStays(t *testing.T, data, id string, want ...string) {
	t.Helper()
	_, stderr, status := run(t, "", on(data, "client delete "+id)...)
	_, commands, _ := strings.Cut(stderr, "Remove them with:\n  ")
	check.Equal(t, "status", status, command.ExitOK)
	check.Equal(t, "commands", strings.Split(strings.TrimSpace(commands), "\n  "), want)
}

// TestDeletingAClientNamesItsLimits: overrides and a candidate too, with the commands that remove them; the same
// on a server and on the store.
func TestDeletingAClientNamesItsLimits(t *testing.T) {
	const id, q = "a/b%2F:it's", `'a/b%2F:it'\''s'`
	const unset = "oauth-server limits unset " + q
	s := newManaged(t)
	newClient(t, id, "--data", s.data)
	s.limits(0, "candidate set "+id+" --client 9/60s")
	namesWhatStays(t, s.data, id, unset+" --candidate")
	newClient(t, id, "--data", s.data)
	for _, name := range []string{"u1", "u2", "u3", "o'hara", "u4", "u5", "u6"} {
		s.limits(0, "set "+id+" --for-user "+name+" --user 9/60s --yes")
	}
	s.limits(0, "set "+id+" --client 9/60s --yes")
	want := []string{
		unset, unset + ` --for-user 'o'\''hara'`, unset + " --for-user 'u1'", unset + " --for-user 'u2'", unset + " --for-user 'u3'",
		unset + " --for-user 'u4'", "... and 2 more users; list them with: oauth-server limits get " + q, unset + " --candidate",
	}
	namesWhatStays(t, s.data, id, want...)
	newClient(t, id, "--data", s.data)
	s.stop(t)
	namesWhatStays(t, s.data, id, want...)
}

// TestDeletingAClientNamesItsBans: the bans that are not forgotten, on the store and on a server.
func TestDeletingAClientNamesItsBans(t *testing.T) {
	data := storeFile(t)
	for _, id := range []string{"here", "there", "many"} {
		newClient(t, id, "--data", data)
	}
	store, err := bolt.Open(data, bolt.Options{})
	check.OK(t, err)
	ban := func(clientID, username string, until time.Duration) {
		t.Helper()
		at := time.Now().Add(until)
		key := ratelimit.Key{ClientID: clientID, Username: username}
		ban := bans.Ban{Key: key, Version: 1, Since: at.Add(-time.Hour), Until: at, Forget: at.Add(time.Minute)}
		check.OK(t, bans.NewRepository(store).PutBan(t.Context(), ban))
	}
	for _, id := range []string{"here", "there"} {
		ban(id, "", time.Hour)
		ban(id, "o'hara", -time.Second)
		ban(id, "forgotten", -time.Hour)
	}
	for i := range 7 {
		ban("many", fmt.Sprint("u", i), time.Hour)
	}
	check.OK(t, store.Close())
	namesWhatStays(t, data, "here", "oauth-server limits unban 'here' --forget", `oauth-server limits unban 'here' --forget --user 'o'\''hara'`)
	serving(t, "serve", "--data", data)
	namesWhatStays(t, data, "there", "oauth-server limits unban 'there' --forget", `oauth-server limits unban 'there' --forget --user 'o'\''hara'`)
	var many []string
	for i := range 5 {
		many = append(many, fmt.Sprintf("oauth-server limits unban 'many' --forget --user 'u%d'", i))
	}
	namesWhatStays(t, data, "many", append(many, "... and more bans; list them with: oauth-server limits bans 'many' --ended")...)
}

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
	file := filepath.Join(filepath.Dir(data), "users.jsonl")
	check.OK(t, os.WriteFile(file, []byte("\ufeff"+users("Bob", "carol")), 0o600)) // as some editors write it
	for _, step := range []struct{ in, args, says string }{
		{clients("shop"), "client import -", "imported 1 client\n"},
		{"", "user import " + file + " --check", "the file is valid: 2 users\n"},
		{"", "user import " + file, "imported 2 users"},
		{"", "user show bob", "bcrypt"},
	} {
		stdout := runOK(t, step.in, on(data, step.args)...)
		has(t, stdout, step.says)
		hasNot(t, stdout, "$2a")
	}

	server := serving(t, "serve", "--data", data)
	runOK(t, clients("app"), on(data, "client import -")...)
	runOK(t, users("dora"), on(data, "user import -")...)
	for _, id := range []string{"shop", "app"} {
		askToken(t, server.clients, credentials{ClientID: id, ClientSecret: secretOf(id)})
	}
	for _, name := range []string{"bob", "dora"} {
		status, _ := postForm(t, server.clients+"/token", credentials{"app", secretOf("app")},
			url.Values{"grant_type": {"password"}, "username": {name}, "password": {"bobs old password"}})
		check.Equal(t, name+" signs in", status, http.StatusOK)
	}
	has(t, runOK(t, "", on(data, "user show bob")...), "argon2id") // the server's own
}

// TestImportOfBadLines: every problem has its line, and nothing is imported unless that is wanted.
func TestImportOfBadLines(t *testing.T) {
	data := storeFile(t)
	newClient(t, "taken", "--data", data)
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
		runJSON(t, &users, "", on(data, "user list")...)
		return len(users)
	}
	for _, tt := range []struct {
		flag string
		want int
	}{{"--check", 0}, {"", 0}, {"--partial", 1}} {
		has(t, runFails(t, command.ExitFailed, "", in, on(data, "user import - "+tt.flag)...), says...)
		check.Equal(t, tt.flag+" users", listed(), tt.want)
	}
	_, stderr, _ := run(t, `{"client_id": "x"}`+"\n"+`{"client_id": "y", "client_secret_hash": "$2b$10$abc"}`+"\n"+`{"client_id": "z", "client_secret": "s"}`, on(data, "client import -")...)
	has(t, stderr, "line 1: client_secret_hash: is missing", "line 2: client_secret_hash: must be a SHA-256", "line 3: client_secret: ")
}

// TestImportWithoutAnyLineInOrder does not offer --partial, which would import nothing.
func TestImportWithoutAnyLineInOrder(t *testing.T) {
	data := storeFile(t)
	for _, flag := range []string{"--create", "--partial"} {
		hasNot(t, runFails(t, command.ExitFailed, "Fix the lines: none is valid.", "{}\n", on(data, "user import - "+flag)...), "with --partial")
	}
}

// userWithSignIns adds ada to a data file, with a session, a family of refresh tokens at shop, and consents to app, shop and web,
// all made at that time.
func userWithSignIns(t *testing.T, data string) (at time.Time) {
	t.Helper()
	for _, id := range []string{"shop --grant client_credentials", "app", "web"} {
		newClient(t, id, "--data", data)
	}
	addUsers(t, []string{"--data", data}, "ada")
	at = time.Now().UTC().Truncate(time.Second)
	until := at.Add(time.Hour)
	inStore(t, data, func(s app.Store) {
		u, err := s.User(t.Context(), "ada")
		check.OK(t, err)
		of := grants.NewRepository(s)
		for _, id := range []string{"app", "shop", "web"} {
			c, err := s.Client(t.Context(), id)
			check.OK(t, err)
			check.OK(t, of.PutAgreement(t.Context(), grants.Agreement{
				Username: "ada", ClientID: id, ID: "agreed-" + id, Scopes: []string{"read", "write"}, AgreedAt: at, UsedAt: at,
				ExpiresAt: until, ClientStamp: c.Stamp, UserStamp: u.Stamp,
			}))
			if id == "shop" {
				check.OK(t, of.CreateGrant(t.Context(), grants.Grant{
					Authorization: grants.Authorization{ClientID: id, Username: "ada", Family: "f-1", AuthTime: at, UserStamp: u.Stamp},
					Digest:        secret.DigestOf("f"), Generation: 1, IssuedAt: at, ExpiresAt: until, ClientStamp: c.Stamp,
				}))
			}
		}
		check.OK(t, of.CreateSession(t.Context(), accounts.Session{
			Key: secret.DigestOf("cookie").Key(), Username: "ada", CreatedAt: at, ExpiresAt: until, UserStamp: u.Stamp,
		}, 9))
	})
	return at
}

// TestUserConsents: what the page of consents does, an operator can do, with a server and without.
func TestUserConsents(t *testing.T) {
	data := storeFile(t)
	at := userWithSignIns(t, data)
	line := " read write " + at.Format(time.RFC3339) + " " + at.Format(time.RFC3339) + " " + at.Add(time.Hour).Format(time.RFC3339) + "\n"
	listed := func(ids ...string) {
		t.Helper()
		_, list, _ := strings.Cut(table(runOK(t, "", on(data, "user show ADA")...)), "CONSENT TO SCOPES AGREED LAST USED ENDS\n")
		check.Equal(t, "consents", list, strings.Join(ids, line)+line)
	}
	withdraw := func(id, more string) {
		t.Helper()
		args := on(data, "user revoke ada --consent "+id+more)
		check.Equal(t, id, runOK(t, "", args...), "withdrew the consent of user ada to client "+id+"\n")
		runFails(t, command.ExitFailed, "the user has not granted the client any access", "", args...)
	}
	listed("app", "shop", "web")
	withdraw("app", "")
	serving(t, "serve", "--data", data)
	listed("shop", "web")
	withdraw("shop", " --reason asked")
	var list struct {
		Username string
		Consents []struct {
			ClientID string `json:"client_id"`
			Scopes   []string
		}
	}
	runJSON(t, &list, "", on(data, "user show ada")...)
	check.Equal(t, "as JSON", list.Username+" "+list.Consents[0].ClientID+" "+list.Consents[0].Scopes[1], "ada web write")
}

// TestSignInsByID: their IDs are completed, and no ID, as of a variable of a shell that is not set, is refused.
func TestSignInsByID(t *testing.T) {
	data := storeFile(t)
	on := func(args string) []string { return on(data, args) }
	userWithSignIns(t, data)
	for _, args := range []string{
		"user revoke ada --session=", "user revoke ada --family=", "user revoke ada --consent=", "user revoke ada --session x --family all",
		"client list --grant=", "client list --grant implicit",
	} {
		runFails(t, command.ExitUsage, "", "", on(args)...)
	}
	offered := func(flag string) string {
		stdout, _, _ := run(t, "", "__complete", "user", "revoke", "ada", "--data", data, flag, "")
		ids, _, _ := strings.Cut(stdout, "\n:")
		return strings.TrimSpace(strings.Replace(ids, "all", "", 1))
	}
	check.Equal(t, "family", offered("--family"), "f-1")
	session := offered("--session")
	has(t, runOK(t, "", on("user show ada")...), session, "f-1     shop")
	for args, says := range map[string]string{
		"user revoke ada --session " + session: "ended 1 session of user ada", "user revoke ada --family f-1": "ended 1 family of user ada",
		"client list --grant client_credentials": "shop",
	} {
		has(t, runOK(t, "", on(args)...), says)
	}
	stdout, _, _ := run(t, "", on("client list --grant password")...)
	check.Equal(t, "clients with another grant", strings.Contains(stdout, "shop"), false)
}

// A user is stored under one name, and every command takes it in any form.
func TestNamesInAnyCase(t *testing.T) {
	store := []string{"--data", storeFile(t)}
	var made registry.User
	runJSON(t, &made, adaPassword, append([]string{"user", "create", "Ada", "--password-stdin"}, store...)...)
	check.Equal(t, "stored", made.Username, "ada")
	for _, tt := range []struct{ args, says string }{
		{"user operator ADA read", "user ada may now read"},
		{"user passwd Ada --password-stdin", "changed the password of user ada,"},
		{"user revoke aDA", "ended the sessions and tokens of user ada,"},
		{"user delete \uff21da", "deleted user ada"},
	} {
		has(t, runOK(t, adaPassword, append(strings.Fields(tt.args), store...)...), tt.says)
	}
	_, stderr, _ := run(t, adaPassword, append(strings.Fields("user create Grace --password-stdin"), store...)...)
	check.Equal(t, "note", withoutPlace(stderr), "note: the user Grace is stored as grace, and can sign in with either name\n")
	for args, says := range map[string]string{
		"user create GRACE --password-stdin":      `user "grace" already exists`,
		"user create gr\u0430ce --password-stdin": "mixes the scripts Cyrillic and Latin",
		"user create \u265a --password-stdin":     "contains an invalid character",
		"user delete nobody":                      `user "nobody" does not exist`,
	} {
		if _, stderr, status := run(t, adaPassword, append(strings.Fields(args), store...)...); status == command.ExitOK || !strings.Contains(stderr, says) {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
	}
}

// TestWherePasswordsAreHashed by the server, as its processes and its log show it. How many were hashed where is not
// tested here: on a busy machine a process of the lowest priority may be late with each.
func TestWherePasswordsAreHashed(t *testing.T) {
	data := storeFile(t)
	app := newClient(t, "app --grant password", "--data", data)
	runOK(t, adaPassword, "user", "create", "ada", "--password-stdin", "--data", data)
	supported := runtime.GOOS == "linux" && hashing.Quota(os.DirFS("/"), runtime.NumCPU()) == 0
	for setting, processes := range map[string]bool{"auto": supported, "off": false} {
		t.Run(setting, func(t *testing.T) {
			p := launchOperated(t, "serve", "--data", data, "--passwords-processes", setting)
			check.Equal(t, "it has processes that hash", hashes(t, p.Process.Pid), processes)
			for password, want := range map[string]int{adaPassword: http.StatusOK, "not " + adaPassword: http.StatusBadRequest} {
				status, body := postForm(t, p.clients+"/token", app, url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {password}})
				check.Equal(t, "status with "+password+": "+body, status, want)
			}
			has(t, page(t, p.operators+"/metrics"), `oauth_password_hashes_total{place="`)
			p.stop(t)
			text := p.log.String()
			check.Equal(t, "a reason in the log", strings.Contains(text, `msg="hashing passwords in the server process" reason=`), !processes)
			if strings.Contains(text, adaPassword) {
				t.Error("the log has the password")
			}
		})
	}
}

// hashes reports whether a process has a child that hashes.
func hashes(t *testing.T, pid int) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check.OK(t, err)
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(line), hashing.Argument) {
			continue // it has ended, or is another program
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", pid)) {
			return true
		}
	}
	return false
}

// TestSecretThatWasNotShown: the client exists, so the error says how to get another secret.
func TestSecretThatWasNotShown(t *testing.T) {
	data := storeFile(t)
	for _, args := range []string{"client create shop", "client rotate-secret shop -o json"} {
		r, w := io.Pipe()
		check.OK(t, r.Close()) // as of a program that reads no more
		var errs bytes.Buffer
		c := &command.Env{In: strings.NewReader(""), Out: w, ErrOut: &errs}
		check.Equal(t, "status of "+args, execute(t.Context(), c, on(data, args)), command.ExitFailed)
		has(t, errs.String(), "the secret of shop is lost: create another one with client rotate-secret")
	}
	runOK(t, "", on(data, "client show shop")...)
}
