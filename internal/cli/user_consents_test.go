package cli

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
)

// TestUserConsents: what the page of consents does, an operator can do, with a server and without.
func TestUserConsents(t *testing.T) {
	data := storeFile(t)
	on := func(args string) []string { return append(strings.Fields(args), "--data", data) }
	for _, step := range []string{"client create shop", "client create app", "client create web"} {
		runOK(t, "", on(step)...)
	}
	addUsers(t, []string{"--data", data}, "ada")
	ctx := t.Context()
	store, err := app.OpenStore(ctx, config.Store{Embedded: &config.Embedded{Path: data}})
	check.OK(t, err)
	u, err := store.User(ctx, "ada")
	check.OK(t, err)
	at := time.Now().UTC().Truncate(time.Second)
	for _, id := range []string{"app", "shop", "web"} {
		c, err := store.Client(ctx, id)
		check.OK(t, err)
		check.OK(t, grants.NewRepository(store).PutAgreement(ctx, grants.Agreement{
			Username: "ada", ClientID: id, ID: "agreed-" + id, Scopes: []string{"read", "write"}, AgreedAt: at, UsedAt: at,
			ExpiresAt: at.Add(time.Hour), ClientStamp: c.Stamp, UserStamp: u.Stamp,
		}))
	}
	check.OK(t, store.Close())

	expect := func(args, want string) {
		t.Helper()
		check.Equal(t, args, table(runOK(t, "", on(args)...)), want)
	}
	fails := func(args, says string) {
		t.Helper()
		runFails(t, command.ExitFailed, says, "", on(args)...)
	}
	line := " read write " + at.Format(time.RFC3339) + " " + at.Format(time.RFC3339) + " " + at.Add(time.Hour).Format(time.RFC3339) + "\n"
	listed := func(ids ...string) {
		t.Helper()
		_, list, _ := strings.Cut(table(runOK(t, "", on("user show ADA")...)), "CONSENT TO SCOPES AGREED LAST USED ENDS\n")
		check.Equal(t, "consents", list, strings.Join(ids, line)+line)
	}
	listed("app", "shop", "web")
	expect("user revoke ada --consent app", "withdrew the consent of user ada to client app\n")
	fails("user revoke ada --consent app", "the user has not granted the client any access")

	serving(t, "serve", "--data", data)
	listed("shop", "web")
	expect("user revoke ada --consent shop --reason asked", "withdrew the consent of user ada to client shop\n")
	fails("user revoke ada --consent shop", "the user has not granted the client any access")
	var list struct {
		Username string
		Consents []struct {
			ClientID string `json:"client_id"`
			Scopes   []string
		}
	}
	runJSON(t, &list, "", on("user show ada")...)
	check.Equal(t, "as JSON", list.Username+" "+list.Consents[0].ClientID+" "+list.Consents[0].Scopes[1], "ada web write")
}
