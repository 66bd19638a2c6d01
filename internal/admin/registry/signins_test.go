package registry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// TestFamiliesBehindThoseThatEnded: valid sign-ins are listed and ended, however many ended ones
// come before them.
func TestFamiliesBehindThoseThatEnded(t *testing.T) {
	ctx, store := t.Context(), openTestStore(t)
	addUser(t, store, "ada")
	c, _ := addClient(t, store, clientcfg.Client{ID: "shop"})
	u, err := store.User(ctx, "ada")
	check.OK(t, err)
	const number, every = 2 * MostFamilies, 100
	errs := make(chan error)
	for i := range number {
		go func() {
			f := grants.Grant{
				Authorization: grants.Authorization{
					ClientID: "shop", Username: "ada", Family: fmt.Sprint("family ", i), AuthTime: noon, UserStamp: u.Stamp,
				},
				Digest: secret.DigestOf(fmt.Sprint(i)), Generation: 1, IssuedAt: noon, ExpiresAt: noon.Add(time.Hour), ClientStamp: c.Stamp,
			}
			err := store.CreateGrant(ctx, f)
			if i%every != 0 {
				name, until := f.Revocation(noon)
				err = errors.Join(err, store.Revoke(ctx, name, until))
			}
			errs <- err
		}()
	}
	for range number {
		check.OK(t, <-errs)
	}
	r := New(Options{Store: store, Now: func() time.Time { return noon }})
	found, err := r.Families(ctx, "ada")
	list := found.Families
	check.OK(t, err)
	check.Equal(t, "listed", len(list), number/every)
	n, err := r.RevokeFamilies(ctx, "ada", list[0].ID)
	check.OK(t, err)
	check.Equal(t, "ended by its ID", n, 1)
	_, err = r.RevokeFamilies(ctx, "ada", list[0].ID)
	check.ErrorIs(t, err, ErrNoFamily)
	n, err = r.RevokeFamilies(ctx, "ada", "")
	check.OK(t, err)
	check.Equal(t, "ended", n, number/every-1)
	found, err = r.Families(ctx, "ada")
	list = found.Families
	check.OK(t, err)
	check.Equal(t, "listed afterwards", len(list), 0)
}

// leaving is a store with a caller who leaves when a client is read.
type leaving struct {
	*testworld.Store
	leave context.CancelFunc
}

func (s leaving) Client(ctx context.Context, id string) (clientcfg.Client, error) {
	defer s.leave()
	return s.Store.Client(ctx, id)
}

// TestRevokedWhileTheCallerLeaves: what was not revoked is not reported as revoked.
func TestRevokedWhileTheCallerLeaves(t *testing.T) {
	store := openTestStore(t)
	addUser(t, store, "ada")
	c, _ := addClient(t, store, clientcfg.Client{ID: "shop"})
	u, err := store.User(t.Context(), "ada")
	check.OK(t, err)
	check.OK(t, store.CreateGrant(t.Context(), grants.Grant{
		Authorization: grants.Authorization{ClientID: "shop", Username: "ada", Family: "f", AuthTime: noon, UserStamp: u.Stamp},
		Digest:        secret.DigestOf("f"), Generation: 1, IssuedAt: noon, ExpiresAt: noon.Add(time.Hour), ClientStamp: c.Stamp,
	}))
	ctx, leave := context.WithCancel(t.Context())
	r := New(Options{Store: leaving{store, leave}, Events: store, Now: func() time.Time { return noon }})
	n, err := r.RevokeFamilies(ctx, "ada", "")
	check.ErrorIs(t, err, context.Canceled)
	check.Equal(t, "revoked", n, 0)
}
