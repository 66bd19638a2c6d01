package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// revoking is a store that calls revoke before it revokes.
type revoking struct {
	registry.Store
	revoke func(ctx context.Context) error
}

func (s revoking) PutAll(ctx context.Context, t store.Table, records []store.Record) error {
	if err := s.revoke(ctx); err != nil {
		return err
	}
	return s.Store.PutAll(ctx, t, records)
}

// familiesWorld has a user with three families, in a store that calls revoke.
func familiesWorld(t *testing.T, revoke func(ctx context.Context) error) *instance {
	t.Helper()
	store := openStore(t)
	w := newInstance(t, "i-1", store, file(), func(o *admin.Options) { o.Registry = revoking{store, revoke} })
	now := w.clock.Now()
	for _, name := range []string{"one", "two", "three"} {
		check.OK(t, store.CreateGrant(t.Context(), grants.Grant{
			Authorization: grants.Authorization{ClientID: "app", Username: "ada", Family: name, AuthTime: now},
			Digest:        secret.DigestOf(name), Generation: 1, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
		}))
	}
	return w
}

// TestFamiliesRevokedInPart: the response has the number, and the next request revokes the others.
func TestFamiliesRevokedInPart(t *testing.T) {
	var calls atomic.Int64
	w := familiesWorld(t, func(context.Context) error {
		if calls.Add(1) == 2 {
			return errors.New("no database")
		}
		return nil
	})
	all := request{method: http.MethodDelete, path: "/users/ada/families", token: writer}
	a := w.send(all).is(http.StatusServiceUnavailable)
	left := w.get("/users/ada/families").at("families").([]any)
	check.Equal(t, "detail", a.at("detail").(string)[:13], "ended "+string(rune('0'+3-len(left)))+", and ")
	check.Equal(t, "ended by the next", w.send(all).is(http.StatusOK).at("ended"), any(float64(len(left))))
}

// TestFamiliesOfOneUserAtATime: a second request waits for the first, and is not begun if its
// caller disconnects. A single family can be revoked at any time.
func TestFamiliesOfOneUserAtATime(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	w := familiesWorld(t, func(context.Context) error {
		if calls.Add(1) <= 3 { // of the first request
			begun <- struct{}{}
			<-proceed
		}
		return nil
	})
	remove := func(ctx context.Context, path string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(ctx, http.MethodDelete, "/admin/v1"+path, http.NoBody)
		req.Header.Set("Authorization", "Bearer "+writer)
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, req)
		return rec
	}
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- remove(context.WithoutCancel(t.Context()), "/users/ada/families") }()
	for range 3 {
		<-begun
	}
	gone, hangUp := context.WithCancel(t.Context())
	waits := make(chan *httptest.ResponseRecorder)
	go func() { waits <- remove(gone, "/users/ada/families") }()
	hangUp()
	check.Equal(t, "answer to a caller that hung up", (<-waits).Code, http.StatusServiceUnavailable)
	check.Equal(t, "revoked meanwhile", calls.Load(), 3)
	one := w.get("/users/ada/families").at("families", 0, "id").(string)
	check.Equal(t, "one of them", remove(t.Context(), "/users/ada/families/"+one).Code, http.StatusOK)
	close(proceed)
	check.Equal(t, "answer to the first", (<-first).Code, http.StatusOK)
	check.Equal(t, "answer afterwards", strings.TrimSpace(remove(t.Context(), "/users/ada/families").Body.String()), `{"username":"ada","ended":0}`)
}

// TestFamiliesAreRevokedToTheEnd: there is no time limit, and it continues even if the caller has
// disconnected.
func TestFamiliesAreRevokedToTheEnd(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	w := familiesWorld(t, func(ctx context.Context) error {
		hangUp()
		if _, bounded := ctx.Deadline(); bounded {
			return errors.New("the revocation has a time limit")
		}
		return ctx.Err()
	})
	req := httptest.NewRequestWithContext(ctx, http.MethodDelete, "/admin/v1/users/ada/families", http.NoBody)
	req.Header.Set("Authorization", "Bearer "+writer)
	rec := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	w.api.ServeHTTP(rec, req)
	check.Equal(t, "answer", strings.TrimSpace(rec.Body.String()), `{"username":"ada","ended":3}`)
	check.Equal(t, "deadlines", len(rec.set), 2)
	check.Equal(t, "no deadline for the answer while it works", rec.set[0].IsZero(), true)
	check.Equal(t, "a deadline for the answer itself", rec.set[1].IsZero(), false)
}
