package registry

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// BenchmarkRevokeFamilies revokes 10,000 sign-ins of one user in a file, each with its event.
func BenchmarkRevokeFamilies(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		ctx, store := b.Context(), testworld.OpenStore(b, filepath.Join(b.TempDir(), "test.db"))
		addUser(b, store, "ada")
		c, _ := addClient(b, store, clientcfg.Client{ID: "shop"})
		u, err := store.User(ctx, "ada")
		check.OK(b, err)
		const number = 10_000
		var wg sync.WaitGroup
		for i := range number {
			wg.Go(func() {
				check.OK(b, store.CreateGrant(ctx, grants.Grant{
					Authorization: grants.Authorization{
						ClientID: "shop", Username: "ada", Family: fmt.Sprint("family ", i), AuthTime: noon, UserStamp: u.Stamp,
					},
					Digest: secret.DigestOf(fmt.Sprint(i)), Generation: 1, IssuedAt: noon, ExpiresAt: noon.Add(time.Hour), ClientStamp: c.Stamp,
				}))
			})
		}
		wg.Wait()
		r := New(Options{Store: store, Events: store, Now: func() time.Time { return noon }})
		b.StartTimer()
		n, err := r.RevokeFamilies(ctx, "ada", "")
		check.OK(b, err)
		check.Equal(b, "ended", n, number)
	}
}
