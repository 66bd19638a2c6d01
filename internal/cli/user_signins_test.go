package cli

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// TestSignInsByID: their IDs are completed, and no ID, as of a variable of a shell that is not set, is refused.
func TestSignInsByID(t *testing.T) {
	data := storeFile(t)
	on := func(args string) []string { return strings.Split(args+" --data "+data, " ") }
	runOK(t, "", on("client create shop --grant client_credentials")...)
	addUsers(t, []string{"--data", data}, "ada")
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Second)
	store, err := app.OpenStore(ctx, config.Store{Embedded: &config.Embedded{Path: data}})
	check.OK(t, err)
	u, err := store.User(ctx, "ada")
	check.OK(t, err)
	shop, err := store.Client(ctx, "shop")
	check.OK(t, err)
	check.OK(t, grants.NewRepository(store).CreateSession(ctx, accounts.Session{
		Key: secret.DigestOf("cookie").Key(), Username: "ada", CreatedAt: now, ExpiresAt: now.Add(time.Hour), UserStamp: u.Stamp,
	}, 9))
	check.OK(t, grants.NewRepository(store).CreateGrant(ctx, grants.Grant{
		Authorization: grants.Authorization{ClientID: "shop", Username: "ada", Family: "f-1", AuthTime: now, UserStamp: u.Stamp},
		Digest:        secret.DigestOf("f"), Generation: 1, IssuedAt: now, ExpiresAt: now.Add(time.Hour), ClientStamp: shop.Stamp,
	}))
	check.OK(t, store.Close())

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
		"user revoke ada --session " + session: "ended 1 sessions of user ada", "user revoke ada --family f-1": "ended 1 families of user ada",
		"client list --grant client_credentials": "shop",
	} {
		has(t, runOK(t, "", on(args)...), says)
	}
	stdout, _, _ := run(t, "", on("client list --grant password")...)
	check.Equal(t, "clients with another grant", strings.Contains(stdout, "shop"), false)
}
