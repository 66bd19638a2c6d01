package storetest

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// unreadableClient spoils one client. It takes only itself out: it is reported, it exists, it can be
// deleted, and the others are read, changed and used as before.
func unreadableClient(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	for _, id := range []string{"a", "bad", "c"} {
		succeed(t, "create", b.CreateClient(ctx, fullClient(id)))
	}
	follow := &follower{b: b}
	follow.read(t)
	target.Spoil(t, b, "bad")
	follow.follow(t)
	equal(t, "read after it was spoilt", []string{"bad"}, follow.seen)
	failWith(t, "what was read", clientcfg.ErrUnreadableClient, follow.records["bad"].Err)
	served := map[string]bool{}
	_, err := b.Clients(ctx, func(r clientcfg.Record) {
		served[r.ID] = r.Err == nil
		if r.Err != nil && !errors.Is(r.Err, clientcfg.ErrUnreadableClient) {
			t.Errorf("client %s: %v, want ErrUnreadableClient", r.ID, r.Err)
		}
	})
	succeed(t, "clients", err)
	equal(t, "which can be read", map[string]bool{"a": true, "bad": false, "c": true}, served)
	_, err = b.Client(ctx, "bad")
	failWith(t, "read", clientcfg.ErrUnreadableClient, err)

	d, err := clientcfg.ReadDirectory(ctx, b)
	succeed(t, "directory", err)
	equal(t, "unreadable", []string{"bad"}, slices.Collect(maps.Keys(d.Unreadable())))
	equal(t, "served", 2, d.Len())

	failWith(t, "create over it", clientcfg.ErrExists, b.CreateClient(ctx, fullClient("bad")))
	c, later := fullClient("c"), Epoch.Add(time.Hour)
	c.Name = "another"
	succeed(t, "revoke another", b.UpdateClient(ctx, c))
	succeed(t, "record uses of all", b.RecordUses(ctx, []clientcfg.SecretUse{
		{ClientID: "bad", Digest: fullClient("bad").SecretDigest, At: later}, {ClientID: "c", Digest: c.SecretDigest, At: later},
	}))
	c.SecretUsed, c.Version = later, 2
	got, err := b.Client(ctx, "c")
	succeed(t, "read another", err)
	equal(t, "another", c, got)
	succeed(t, "delete it", b.DeleteClient(ctx, "bad"))
	succeed(t, "create it anew", b.CreateClient(ctx, fullClient("bad")))
	equal(t, "clients", []clientcfg.Client{fullClient("a"), fullClient("bad"), c}, clients(t, b))
}

// unreadableUser spoils one user. It takes only itself out: it is reported, it exists, and it can be
// deleted.
func unreadableUser(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	for _, name := range []string{"a", "bad", "c"} {
		succeed(t, "create", b.CreateUser(ctx, user(name)))
	}
	target.SpoilUser(t, b, "bad")
	list, err := b.Users(ctx)
	succeed(t, "users", err)
	if len(list) == 3 {
		failWith(t, "the one that cannot be read", grants.ErrUnreadableUser, list[1].Err)
		list[1].Err = nil
	}
	equal(t, "users", []grants.StoredUser{{User: user("a")}, {User: grants.User{Name: "bad"}}, {User: user("c")}}, list)
	_, err = b.User(ctx, "bad")
	failWith(t, "read", grants.ErrUnreadableUser, err)
	failWith(t, "create over it", grants.ErrExists, b.CreateUser(ctx, user("bad")))
	succeed(t, "delete it", b.DeleteUser(ctx, "bad"))
	succeed(t, "create it anew", b.CreateUser(ctx, user("bad")))
	got, err := b.User(ctx, "bad")
	succeed(t, "read it anew", err)
	equal(t, "the new one", user("bad"), got)
}
