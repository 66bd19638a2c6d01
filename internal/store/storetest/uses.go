package storetest

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// recordUses records uses of both secrets of a client: the later time stays, nothing else changes.
func recordUses(t *testing.T, b Backend) {
	t.Helper()
	ctx, c, other, public := t.Context(), fullClient("c"), fullClient("d"), publicClient("p")
	fresh := fullClient("e")
	fresh.SecretUsed, fresh.Former = time.Time{}, clientcfg.FormerSecret{}
	for _, c := range []clientcfg.Client{c, other, public, fresh} {
		succeed(t, "create", b.CreateClient(ctx, c))
	}
	use := func(id string, d secret.Digest, at time.Time) clientcfg.SecretUse {
		return clientcfg.SecretUse{ClientID: id, Digest: d, At: at}
	}
	f, later := &follower{b: b}, Epoch.Add(time.Hour)
	f.read(t)
	succeed(t, "record nothing", b.RecordUses(ctx, nil))
	succeed(t, "record", b.RecordUses(ctx, []clientcfg.SecretUse{
		use("c", c.SecretDigest, later), use("c", c.Former.Digest, later.Add(time.Minute)),
		use("d", other.SecretDigest, other.SecretUsed.Add(-time.Minute)), // earlier
		use("d", c.SecretDigest, later),                                  // of another client
		use("e", fresh.SecretDigest, later), use("e", secret.Digest{}, later),
		use("gone", c.SecretDigest, later), use("p", c.SecretDigest, later),
	}))
	c.SecretUsed, c.Former.Used, fresh.SecretUsed = later, later.Add(time.Minute), later
	equal(t, "clients", []clientcfg.Client{c, other, fresh, public}, clients(t, b))
	f.follow(t)
	equal(t, "changes", []string(nil), f.seen)
	succeed(t, "update from the same version", b.UpdateClient(ctx, c))

	many := make([]clientcfg.SecretUse, 1200)
	for i := range many {
		many[i] = use(fmt.Sprintf("gone %d", i), c.SecretDigest, later)
	}
	many[len(many)-1] = use("c", c.SecretDigest, later.Add(time.Hour))
	succeed(t, "record many", b.RecordUses(ctx, many))
	equal(t, "last use", later.Add(time.Hour), clients(t, b)[0].SecretUsed)
}
