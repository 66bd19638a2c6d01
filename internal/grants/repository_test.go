package grants_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

func storedCode(t *testing.T, r *testworld.Store, name string) grants.Code {
	t.Helper()
	check.OK(t, r.CreateCode(t.Context(), grants.Code{
		Authorization: authorizationOf("alice"), Digest: secret.DigestOf(name), RedirectURI: callback + "?a=1&b=<2>", Challenge: s256(verifier),
		IssuedAt: start, ExpiresAt: start.Add(time.Minute), ClientStamp: secret.NewStamp(),
	}))
	c, err := r.Code(t.Context(), secret.DigestOf(name))
	check.OK(t, err)
	return c
}

func familyOf(c *grants.Code) grants.Family {
	return grants.Family{
		Authorization: c.Authorization, Digest: c.Digest, Generation: 1, IssuedAt: start, ExpiresAt: start.Add(time.Hour), ClientStamp: c.ClientStamp,
	}
}

func TestCodeBecomesFamily(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	code := storedCode(t, r, "code")
	check.Equal(t, "redirect URI", code.RedirectURI, callback+"?a=1&b=<2>")
	check.Equal(t, "scope", code.Scopes[1], `"odd" \ ü`)
	check.ErrorIs(t, r.CreateCode(ctx, code), grants.ErrExists)
	_, err := r.Family(ctx, code.Digest)
	check.ErrorIs(t, err, grants.ErrNotFound)

	first := familyOf(&code)
	check.OK(t, r.RedeemCode(ctx, code, &first))
	check.ErrorIs(t, r.RedeemCode(ctx, code, &first), grants.ErrClaimed)
	claimed, err := r.Code(ctx, code.Digest)
	check.OK(t, err)
	check.Equal(t, "claimed", claimed.Claimed, true)
	check.ErrorIs(t, r.RedeemCode(ctx, claimed, nil), grants.ErrClaimed)
	family, err := r.Family(ctx, code.Digest)
	check.OK(t, err)
	check.Equal(t, "whole family", fmt.Sprint(family.Authorization, family.Generation, family.IssuedAt, family.ExpiresAt, family.ClientStamp),
		fmt.Sprint(first.Authorization, first.Generation, first.IssuedAt, first.ExpiresAt, first.ClientStamp))

	next := family
	next.Generation, next.ExpiresAt = 2, start.Add(time.Second) // earlier than the code's
	check.OK(t, r.RotateFamily(ctx, next))
	check.ErrorIs(t, r.RotateFamily(ctx, next), grants.ErrClaimed)
	n, err := r.Sweep(ctx, start.Add(30*time.Minute))
	check.OK(t, err)
	check.Equal(t, "removed while the record is needed", n, 0)
	claimed, err = r.Code(ctx, code.Digest)
	check.OK(t, err)
	check.Equal(t, "claimed after a rotation", claimed.Claimed, true)

	deleted := storedCode(t, r, "deleted")
	check.OK(t, r.Delete(ctx, store.Table{Name: "grants"}, nil, deleted.Digest.Key()))
	check.ErrorIs(t, r.RedeemCode(ctx, deleted, nil), grants.ErrNotFound)
}

// TestRotateAfterAnotherWrite: only another generation is a replay. Other writers may change the
// table too, such as an operator in a database shell.
func TestRotateAfterAnotherWrite(t *testing.T) {
	r, ctx, table := openRepository(t), t.Context(), store.Table{Name: "grants"}
	code := storedCode(t, r, "code")
	check.OK(t, r.CreateFamily(ctx, func() grants.Family { f := familyOf(&code); f.Digest = secret.DigestOf("family"); return f }()))
	next, err := r.Family(ctx, secret.DigestOf("family"))
	check.OK(t, err)
	check.OK(t, r.Get(ctx, table, func(rec store.Record) error {
		_, err := r.Put(ctx, table, rec, rec.Seen())
		return err
	}, next.Digest.Key()))
	next.Generation = 2
	check.OK(t, r.RotateFamily(ctx, next))
	check.ErrorIs(t, r.RotateFamily(ctx, next), grants.ErrClaimed)
	check.OK(t, r.Delete(ctx, table, nil, next.Digest.Key()))
	check.ErrorIs(t, r.RotateFamily(ctx, next), grants.ErrNotFound)
}

// TestOneClaims has many goroutines claim one code, and then rotate its family, concurrently.
func TestOneClaims(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	code := storedCode(t, r, "code")
	first := familyOf(&code)
	fight := func(what string, claim func() error) {
		var won atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				switch err := claim(); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, grants.ErrClaimed):
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		all.Wait()
		check.Equal(t, what+": winners", won.Load(), 1)
	}
	fight("redeem", func() error { return r.RedeemCode(ctx, code, &first) })
	family, err := r.Family(ctx, code.Digest)
	check.OK(t, err)
	family.Generation++
	fight("rotate", func() error { return r.RotateFamily(ctx, family) })
}

func TestFamiliesOf(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	for i := range 2500 {
		f := grants.Family{Authorization: authorizationOf([]string{"alice", "bob"}[i%2]), Digest: secret.DigestOf(fmt.Sprint(i)), Generation: 1, IssuedAt: start, ExpiresAt: start}
		f.Family = fmt.Sprint(i)
		check.OK(t, r.CreateFamily(ctx, f))
	}
	storedCode(t, r, "code of alice")
	seen := map[string]bool{}
	check.OK(t, r.FamiliesOf(ctx, "alice", func(some []grants.Family) error {
		for _, f := range some {
			seen[f.Family] = true
			check.Equal(t, "user", f.Username, "alice")
		}
		return r.Revoke(ctx, some[0].Family, start) // each may use the store
	}))
	check.Equal(t, "families", len(seen), 1250)
	check.ErrorIs(t, r.FamiliesOf(ctx, "alice", func([]grants.Family) error { return errDown }), errDown)
}

func TestSessionRecords(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	session := func(user string, n int) grants.Session {
		return grants.Session{Key: fmt.Sprint(user, n), Username: user, CreatedAt: start.Add(time.Duration(n) * time.Minute), ExpiresAt: start.Add(time.Hour), UserStamp: secret.NewStamp()}
	}
	names := func(user string) (text string) {
		list, err := r.SessionsOf(ctx, user)
		check.OK(t, err)
		for _, s := range list {
			text += s.Key + " "
		}
		return text
	}
	for n := range 5 {
		check.OK(t, errors.Join(r.CreateSession(ctx, session("bob", n), 3), r.CreateSession(ctx, session("bo", n), 3)))
	}
	check.Equal(t, "the newest three", names("bob"), "bob4 bob3 bob2 ")
	check.ErrorIs(t, r.CreateSession(ctx, session("bob", 4), 1), grants.ErrExists)
	check.OK(t, r.CreateSession(ctx, session("bob", -9), 1)) // the clock of another instance
	check.Equal(t, "never the new one", names("bob"), "bob-9 ")
	want := session("eve", 1)
	check.OK(t, r.CreateSession(ctx, want, 1))
	got, err := r.Session(ctx, want.Key)
	check.OK(t, err)
	check.Equal(t, "session", got, want)
	check.OK(t, errors.Join(r.DeleteSession(ctx, want.Key), r.DeleteSession(ctx, want.Key)))
	_, err = r.Session(ctx, want.Key)
	check.ErrorIs(t, err, grants.ErrNotFound)
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
	check.ErrorIs(t, r.PutAgreement(ctx, a), grants.ErrExists)
	stored, err := r.Agreement(ctx, "ada", "shop")
	check.OK(t, err)
	older := stored
	stored.Scopes = append(stored.Scopes, "write")
	check.OK(t, r.PutAgreement(ctx, stored))
	check.ErrorIs(t, r.PutAgreement(ctx, older), grants.ErrExists)
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
	check.ErrorIs(t, err, grants.ErrNotFound)
	check.OK(t, r.ForgetAgreements(ctx, "ada"))
	list, err = r.AgreementsOf(ctx, "ada")
	check.OK(t, err)
	check.Equal(t, "agreements of ada", len(list), 0)
	list, err = r.AgreementsOf(ctx, "ad")
	check.OK(t, err)
	check.Equal(t, "agreements of ad", len(list), 1)
}

func TestRevocationRecords(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	check.OK(t, errors.Join(r.Revoke(ctx, "a", start.Add(time.Hour)), r.Revoke(ctx, "a", start)))
	for _, tt := range []struct {
		names []string
		want  bool
	}{{nil, false}, {[]string{"b"}, false}, {[]string{"b", "a"}, true}, {[]string{"a", "a"}, true}} {
		yes, err := r.Revoked(ctx, tt.names...)
		check.OK(t, err)
		check.Equal(t, fmt.Sprint(tt.names), yes, tt.want)
	}
	n, err := r.Sweep(ctx, start.Add(time.Minute))
	check.OK(t, err)
	check.Equal(t, "removed before the later time", n, 0)
	check.OK(t, r.RecordOnce(ctx, "once", start))
	check.ErrorIs(t, r.RecordOnce(ctx, "once", start), grants.ErrExists)
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
		_, err = r.Code(ctx, d)
		check.ErrorIs(t, err, store.ErrUnreadable)
		check.ErrorIs(t, r.FamiliesOf(ctx, "alice", func([]grants.Family) error { return errDown }), nil)
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
	c, err := r.Code(context.WithoutCancel(ctx), d)
	check.OK(t, err)
	check.Equal(t, "scopes", fmt.Sprintf("%q", c.Scopes), `["a\n" "b"]`)
}

// TestEndSignIns: revocations stay.
func TestEndSignIns(t *testing.T) {
	r, ctx := openRepository(t), t.Context()
	for i := range 1500 {
		storedCode(t, r, fmt.Sprint(i))
	}
	check.OK(t, errors.Join(
		r.CreateSession(ctx, grants.Session{Key: "s", Username: "ada"}, 1), r.PutAgreement(ctx, grants.Agreement{Username: "ada", ClientID: "shop"}),
		r.Revoke(ctx, "a", start), r.EndSignIns(ctx)))
	for _, table := range []string{"grants", "sessions", "agreements"} {
		check.OK(t, r.List(ctx, store.Table{Name: table}, store.Query{}, func(store.Record) error { return errors.New(table + " has a record") }))
	}
	yes, err := r.Revoked(ctx, "a")
	check.OK(t, err)
	check.Equal(t, "revoked", yes, true)
}
