package grants_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

func openRepository(t *testing.T) *testworld.Store {
	t.Helper()
	return testworld.OpenStore(t, filepath.Join(t.TempDir(), "test.db"))
}

func authorizationOf(user string) grants.Authorization {
	return grants.Authorization{
		ClientID: "shop", Username: user, Scopes: []string{"read", `"odd" \ ü`}, Family: "agreement.family", AuthTime: start, UserStamp: secret.NewStamp(),
	}
}

func storedCode(t *testing.T, r *testworld.Store, name string) grants.Grant {
	t.Helper()
	check.OK(t, r.CreateGrant(t.Context(), grants.Grant{
		Authorization: authorizationOf("alice"), Digest: secret.DigestOf(name), RedirectURI: callback + "?a=1&b=<2>", Challenge: s256(verifier),
		IssuedAt: start, ExpiresAt: start.Add(time.Minute), ClientStamp: secret.NewStamp(),
	}))
	c, err := r.Grant(t.Context(), secret.DigestOf(name))
	check.OK(t, err)
	return c
}

// together calls f for each of n numbers. The calls share the commits of the store.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for first := range 50 {
		all.Go(func() {
			for i := first; i < n; i += 50 {
				f(i)
			}
		})
	}
	all.Wait()
}

// firstOf returns the family that a code becomes.
func firstOf(code *grants.Grant) grants.Grant {
	first := code.Redeemed()
	first.Generation, first.ExpiresAt = 1, start.Add(time.Hour)
	return first
}

func TestCodeBecomesFamily(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	code := storedCode(t, r, "code")
	check.Equal(t, "redirect URI", code.RedirectURI, callback+"?a=1&b=<2>")
	check.Equal(t, "scope", code.Scopes[1], `"odd" \ ü`)
	check.ErrorIs(t, r.CreateGrant(ctx, code), store.ErrConflict)

	first := firstOf(&code)
	check.OK(t, r.Claim(ctx, first))
	for _, again := range []grants.Grant{first, code.Redeemed()} {
		check.ErrorIs(t, r.Claim(ctx, again), grants.ErrClaimed)
	}
	family, err := r.Grant(ctx, code.Digest)
	check.OK(t, err)
	describe := func(g *grants.Grant) string {
		return fmt.Sprint(g.Authorization, g.Generation, g.IssuedAt, g.ExpiresAt, g.ClientStamp, g.Claimed, g.RedirectURI, g.Challenge)
	}
	check.Equal(t, "whole family", describe(&family), describe(&first))

	next := family
	next.Generation, next.ExpiresAt = 2, start.Add(time.Second) // earlier than the code's
	check.OK(t, r.Claim(ctx, next))
	check.ErrorIs(t, r.Claim(ctx, next), grants.ErrClaimed)
	n, err := r.Sweep(ctx, start.Add(30*time.Minute))
	check.OK(t, err)
	check.Equal(t, "removed while the record is needed", n, 0)
	family, err = r.Grant(ctx, code.Digest)
	check.OK(t, err)
	check.Equal(t, "claimed after a rotation", family.Claimed, true)
	check.Equal(t, "end of the newest refresh token", family.ExpiresAt, next.ExpiresAt)

	deleted := storedCode(t, r, "deleted")
	check.OK(t, r.Delete(ctx, store.Table{Name: "grants"}, nil, deleted.Digest.Key()))
	check.ErrorIs(t, r.Claim(ctx, deleted.Redeemed()), store.ErrNotFound)
}

// TestClaimAfterAnotherWrite: only another claim is a replay. Other writers may change the table
// too, such as an operator in a database shell.
func TestClaimAfterAnotherWrite(t *testing.T) {
	r, ctx, table := openRepository(t), t.Context(), store.Table{Name: "grants"}
	code := storedCode(t, r, "code")
	touch := func() {
		check.OK(t, r.Get(ctx, table, func(rec store.Record) error {
			_, err := r.Put(ctx, table, rec, rec.Seen())
			return err
		}, code.Digest.Key()))
	}
	touch()
	check.OK(t, r.Claim(ctx, firstOf(&code)))
	next, err := r.Grant(ctx, code.Digest)
	check.OK(t, err)
	touch()
	next.Generation = 2
	check.OK(t, r.Claim(ctx, next))
	check.ErrorIs(t, r.Claim(ctx, next), grants.ErrClaimed)
	check.OK(t, r.Delete(ctx, table, nil, next.Digest.Key()))
	check.ErrorIs(t, r.Claim(ctx, next), store.ErrNotFound)
}

// TestOneClaims has many goroutines claim one code, and then rotate its family, concurrently.
//
// Attack (tokens): Concurrent use of a code or refresh token. One compare-and-swap decides the
// only winner. Also grants.TestPitfall02_DoubleSpend.
func TestOneClaims(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	code := storedCode(t, r, "code")
	fight := func(what string, next grants.Grant) {
		won, failures := atOnce(50, func() error { return r.Claim(ctx, next) })
		for _, err := range failures {
			check.ErrorIs(t, err, grants.ErrClaimed)
		}
		check.Equal(t, what+": winners", won, 1)
	}
	fight("redeem", firstOf(&code))
	family, err := r.Grant(ctx, code.Digest)
	check.OK(t, err)
	family.Generation++
	fight("rotate", family)
}

func TestFamiliesOf(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	together(2500, func(i int) {
		f := grants.Grant{Authorization: authorizationOf([]string{"alice", "bob"}[i%2]), Digest: secret.DigestOf(fmt.Sprint(i)), Generation: 1, IssuedAt: start, ExpiresAt: start}
		f.Family = fmt.Sprint(i)
		check.OK(t, r.CreateGrant(ctx, f))
	})
	storedCode(t, r, "code of alice")
	seen := map[string]bool{}
	check.OK(t, r.FamiliesOf(ctx, "alice", func(some []grants.Grant) error {
		for _, f := range some {
			seen[f.Family] = true
			check.Equal(t, "user", f.Username, "alice")
		}
		return r.Revoke(ctx, some[0].Family, start) // each may use the store
	}))
	check.Equal(t, "families", len(seen), 1250)
	check.ErrorIs(t, r.FamiliesOf(ctx, "alice", func([]grants.Grant) error { return errDown }), errDown)
}

func TestAgreementRecords(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	agreement := func(user, client string) grants.Agreement {
		return grants.Agreement{
			Username: user, ClientID: client, ID: "id of " + client, Scopes: []string{"read"}, AgreedAt: start, UsedAt: start,
			ExpiresAt: start.Add(time.Hour), ClientStamp: secret.NewStamp(), UserStamp: secret.NewStamp(),
		}
	}
	a := agreement("ada", "shop")
	check.OK(t, errors.Join(r.PutAgreement(ctx, a), r.PutAgreement(ctx, agreement("ada", "an app")), r.PutAgreement(ctx, agreement("ad", "shop"))))
	check.ErrorIs(t, r.PutAgreement(ctx, a), store.ErrConflict)
	stored, err := r.Agreement(ctx, "ada", "shop")
	check.OK(t, err)
	older := stored
	stored.Scopes = append(stored.Scopes, "write")
	check.OK(t, r.PutAgreement(ctx, stored))
	check.ErrorIs(t, r.PutAgreement(ctx, older), store.ErrConflict)
	list, err := r.AgreementsOf(ctx, "ada")
	check.OK(t, err)
	check.Equal(t, "agreements", len(list), 2)
	check.Equal(t, "ordered by client", list[0].ClientID+", "+list[1].ClientID, "an app, shop")
	check.Equal(t, "scopes", len(list[1].Scopes), 2)

	other := older
	other.ID = "of another consent"
	check.OK(t, r.DeleteAgreement(ctx, &other))
	_, err = r.Agreement(ctx, "ada", "shop")
	check.OK(t, err)
	check.OK(t, errors.Join(r.DeleteAgreement(ctx, &older), r.DeleteAgreement(ctx, &older))) // in any state
	_, err = r.Agreement(ctx, "ada", "shop")
	check.ErrorIs(t, err, store.ErrNotFound)
	check.OK(t, r.ForgetAgreements(ctx, "ada"))
	list, err = r.AgreementsOf(ctx, "ada")
	check.OK(t, err)
	check.Equal(t, "agreements of ada", len(list), 0)
	list, err = r.AgreementsOf(ctx, "ad")
	check.OK(t, err)
	check.Equal(t, "agreements of ad", len(list), 1)
}

// TestUnreadableGrants: an unreadable grant is an error of its own call, and missing in lists.
func TestUnreadableGrants(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	storedCode(t, r, "good")
	d := secret.DigestOf("bad")
	for _, value := range []string{
		`{}`, `{"client":"shop","issued":1,"color":"red"}`, `{"client":"shop","issued":"1"}`, `{"client":"shop","issued":1,}`,
		`{"client":"shop","issued":1}}`, `{"client":7,"issued":1}`, `{"client":"shop","issued":1,"generation":0}`,
		`{"client":"shop","issued":253402300800000}`, `{"client":"shop","issued":1,"userStamp":{"id":"x","n":1,"x":2}}`, `{"client":"sh\x","issued":1}`,
	} {
		check.OK(t, r.Delete(ctx, store.Table{Name: "grants"}, nil, d.Key()))
		_, err := r.Put(ctx, store.Table{Name: "grants"}, store.Record{Key: d.Key(), Owner: "alice", Value: []byte(value)}, store.Seen{})
		check.OK(t, err)
		_, err = r.Grant(ctx, d)
		check.ErrorIs(t, err, store.ErrUnreadable)
		check.ErrorIs(t, r.FamiliesOf(ctx, "alice", func([]grants.Grant) error { return errDown }), nil)
	}
	check.OK(t, r.Delete(ctx, store.Table{Name: "grants"}, nil, d.Key()))
	_, err := r.Put(ctx, store.Table{Name: "grants"}, store.Record{Key: d.Key(), Owner: "al\u00efce", Value: []byte(
		` { "issued" : 1 , "scopes":[ "\u0061\n" , "b" ] , "client":"shop"} `)}, store.Seen{})
	if err == nil {
		t.Error("a value with spaces around it was stored")
	}
	_, err = r.Put(ctx, store.Table{Name: "grants"}, store.Record{Key: d.Key(), Value: []byte(
		`{ "issued" : 1 , "scopes":[ "\u0061\n" , "b" ] , "client":"shop"}`)}, store.Seen{})
	check.OK(t, err)
	c, err := r.Grant(context.WithoutCancel(ctx), d)
	check.OK(t, err)
	check.Equal(t, "scopes", fmt.Sprintf("%q", c.Scopes), `["a\n" "b"]`)
}

// TestEndSignIns: revocations stay.
func TestEndSignIns(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	together(1500, func(i int) { storedCode(t, r, fmt.Sprint(i)) })
	check.OK(t, errors.Join(
		r.CreateSession(ctx, accounts.Session{Key: "s", Username: "ada"}, 1), r.PutAgreement(ctx, grants.Agreement{Username: "ada", ClientID: "shop"}),
		r.Revoke(ctx, "a", start), r.EndSignIns(ctx)))
	for _, table := range []string{"grants", "sessions", "agreements"} {
		check.OK(t, r.List(ctx, store.Table{Name: table}, store.Query{}, func(store.Record) error { return errors.New(table + " has a record") }))
	}
	yes, err := r.Revoked(ctx, "a")
	check.OK(t, err)
	check.Equal(t, "revoked", yes, true)
}
