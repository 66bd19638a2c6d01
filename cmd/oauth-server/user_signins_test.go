package main

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// TestSignInsByID: their IDs are completed, and no ID, as of a variable of a shell that is not set, is refused.
func TestSignInsByID(t *testing.T) {
	data := storeFile(t)
	on := func(args string) []string { return strings.Split(args+" --data "+data, " ") }
	for _, step := range []string{"client create shop --grant client_credentials", "user create ada --password-stdin"} {
		runOK(t, adaPassword, on(step)...)
	}
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Second)
	store, err := app.OpenStore(ctx, config.Store{Embedded: &config.Embedded{Path: data}})
	check.OK(t, err)
	u, err := store.User(ctx, "ada")
	check.OK(t, err)
	shop, err := store.Client(ctx, "shop")
	check.OK(t, err)
	check.OK(t, grants.NewRepository(store).CreateSession(ctx, grants.Session{
		Key: secret.DigestOf("cookie").Key(), Username: "ada", CreatedAt: now, ExpiresAt: now.Add(time.Hour), UserStamp: u.Stamp,
	}, 9))
	check.OK(t, grants.NewRepository(store).CreateFamily(ctx, grants.Family{
		Authorization: grants.Authorization{ClientID: "shop", Username: "ada", Family: "f-1", AuthTime: now, UserStamp: u.Stamp},
		Digest:        secret.DigestOf("f"), Generation: 1, IssuedAt: now, ExpiresAt: now.Add(time.Hour), ClientStamp: shop.Stamp,
	}))
	check.OK(t, store.Close())

	for _, args := range []string{
		"user sessions ada --end=", "user families ada --revoke=", "user sessions ada --end x --end-all", "user families ada --revoke x --revoke-all",
		"client list --grant=", "client list --grant implicit",
	} {
		runFails(t, exitUsage, "", "", on(args)...)
	}
	offered := func(command, flag string) string {
		stdout, _, _ := run(t, "", "__complete", "user", command, "ada", "--data", data, flag, "")
		id, _, _ := strings.Cut(stdout, "\n")
		return id
	}
	check.Equal(t, "family", offered("families", "--revoke"), "f-1")
	session := offered("sessions", "--end")
	for args, says := range map[string]string{
		"user sessions ada --end " + session: "ended 1 sessions of user ada", "user families ada --revoke f-1": "ended 1 families of user ada",
		"client list --grant client_credentials": "shop",
	} {
		has(t, runOK(t, "", on(args)...), says)
	}
	stdout, _, _ := run(t, "", on("client list --grant password")...)
	check.Equal(t, "clients with another grant", strings.Contains(stdout, "shop"), false)
}
