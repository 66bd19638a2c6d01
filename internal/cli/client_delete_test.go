package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/bolt"
)

// TestDeletingAClientNamesItsLimits: overrides and a candidate too, with the commands that remove them; the same
// on a server and on the store.
func TestDeletingAClientNamesItsLimits(t *testing.T) {
	const id = "a/b%2F:it's"
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	o := serving(t, "serve", "--data", data, "--issuer", "http://127.0.0.1:9096")
	at := []string{"--server", o.operators, "--token", askToken(t, o.clients, ops)}
	limits := func(args ...string) {
		t.Helper()
		runOK(t, "", append(append([]string{"limits"}, args...), at...)...)
	}
	deletes := func(want ...string) {
		t.Helper()
		_, stderr, status := run(t, "", "client", "delete", id, "--data", data)
		_, commands, _ := strings.Cut(stderr, "Remove them with:\n  ")
		check.Equal(t, "status", status, command.ExitOK)
		check.Equal(t, "commands", strings.Split(strings.TrimSpace(commands), "\n  "), want)
	}
	const q = `'a/b%2F:it'\''s'`
	candidate := "oauth-server limits unset " + q + " --candidate"
	runJSON(t, &credentials{}, "", "client", "create", id, "--data", data)
	limits("candidate", "set", id, "--client", "9/60s")
	deletes(candidate)
	runJSON(t, &credentials{}, "", "client", "create", id, "--data", data)
	for _, name := range []string{"u1", "u2", "u3", "o'hara", "u4", "u5", "u6"} {
		limits("set", id, "--for-user", name, "--user", "9/60s", "--yes")
	}
	limits("set", id, "--client", "9/60s", "--yes")
	unset := "oauth-server limits unset " + q
	want := []string{
		unset, unset + ` --for-user 'o'\''hara'`, unset + " --for-user 'u1'", unset + " --for-user 'u2'", unset + " --for-user 'u3'",
		unset + " --for-user 'u4'", "... and 2 more users; list them with: oauth-server limits get " + q, candidate,
	}
	deletes(want...)
	runJSON(t, &credentials{}, "", "client", "create", id, "--data", data)
	o.stop(t)
	deletes(want...)
}

// TestDeletingAClientNamesItsBans: the bans that are not forgotten, on the store and on a server.
func TestDeletingAClientNamesItsBans(t *testing.T) {
	data := storeFile(t)
	for _, id := range []string{"here", "there", "many"} {
		runJSON(t, &credentials{}, "", "client", "create", id, "--data", data)
	}
	store, err := bolt.Open(data, bolt.Options{})
	check.OK(t, err)
	ban := func(clientID, username string, until time.Duration) {
		t.Helper()
		at := time.Now().Add(until)
		key := ratelimit.Key{ClientID: clientID, Username: username}
		_, err := bans.NewRepository(store).PutBan(t.Context(), bans.Ban{Key: key, Since: at.Add(-time.Hour), Until: at, Forget: at.Add(time.Minute)})
		check.OK(t, err)
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
	deletes := func(id string, want ...string) {
		t.Helper()
		_, stderr, status := run(t, "", "client", "delete", id, "--data", data)
		_, commands, _ := strings.Cut(stderr, "Remove them with:\n  ")
		check.Equal(t, "status", status, command.ExitOK)
		check.Equal(t, "commands", strings.Split(strings.TrimSpace(commands), "\n  "), want)
	}
	deletes("here", "oauth-server limits unban 'here' --forget", `oauth-server limits unban 'here' --forget --user 'o'\''hara'`)
	o := serving(t, "serve", "--data", data, "--issuer", "http://127.0.0.1:9096")
	deletes("there", "oauth-server limits unban 'there' --forget", `oauth-server limits unban 'there' --forget --user 'o'\''hara'`)
	var many []string
	for i := range 5 {
		many = append(many, fmt.Sprintf("oauth-server limits unban 'many' --forget --user 'u%d'", i))
	}
	deletes("many", append(many, "... and more bans; list them with: oauth-server limits bans 'many' --ended")...)
	o.stop(t)
}
