package grants_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// unstamped is a store and a signer that leave the stamps out, as an instance of an earlier release does.
type unstamped struct {
	grants.Store
	grants.Signer
}

func earlierRelease(o *grants.Options) {
	u := unstamped{o.Store, o.Signer}
	o.Store, o.Signer = u, u
}

func (u unstamped) Sign(c keys.Claims) (string, error) {
	c.ClientStamp, c.UserStamp = secret.Stamp{}, secret.Stamp{}
	return u.Signer.Sign(c)
}

func (u unstamped) CreateCode(ctx context.Context, c grants.Code) error {
	c.ClientStamp, c.UserStamp = secret.Stamp{}, secret.Stamp{}
	return u.Store.CreateCode(ctx, c)
}

func (u unstamped) CreateFamily(ctx context.Context, f grants.Family) error {
	f.ClientStamp, f.UserStamp = secret.Stamp{}, secret.Stamp{}
	return u.Store.CreateFamily(ctx, f)
}

func (u unstamped) RedeemCode(ctx context.Context, d secret.Digest, first *grants.Family) error {
	if first != nil {
		first.ClientStamp, first.UserStamp = secret.Stamp{}, secret.Stamp{}
	}
	return u.Store.RedeemCode(ctx, d, first)
}

func (u unstamped) CreateSession(ctx context.Context, s grants.Session, most int) error {
	s.UserStamp = secret.Stamp{}
	return u.Store.CreateSession(ctx, s, most)
}

// registration is what the record of a client or a user has of it.
type registration struct {
	stamp              secret.Stamp
	created, notBefore time.Time
}

// TestRollingUpgrade: what this and an earlier release have issued, under records of both, and what it is
// worth when the record has changed. A record of an earlier release has no stamp.
func TestRollingUpgrade(t *testing.T) {
	created := start.Add(-time.Hour)
	old, fresh := registration{created: created}, registration{stamp: secret.NewStamp(), created: created}
	revoked := func(r registration) registration {
		r.stamp, r.notBefore = r.stamp.Revoked(), start.Add(11*time.Second)
		return r
	}
	named, dropped := old, revoked(fresh)
	named.stamp = secret.Stamp{ID: secret.ID()}
	dropped.stamp = secret.Stamp{}
	namesake := registration{stamp: secret.NewStamp(), created: start}
	oldRevoked := revoked(old)
	const late = 12 * time.Second // later than the time of the revocation
	for name, tt := range map[string]struct {
		earlier    bool // the instance that has issued it
		after      time.Duration
		under, now registration
		good       bool
	}{
		"old instance, old record":                  {true, 0, old, old, true},
		"old instance, new record":                  {true, 0, fresh, fresh, true},
		"old instance, the record gets an ID":       {true, 0, old, named, true},
		"old instance, old record revoked":          {true, 0, old, revoked(old), false},
		"old instance, new record revoked":          {true, 0, fresh, revoked(fresh), false},
		"old instance, after a revocation":          {true, late, revoked(fresh), revoked(fresh), true},
		"old instance, a namesake later":            {true, -time.Second, old, namesake, false},
		"old instance, after the stamp was dropped": {true, late, dropped, dropped, true},
		"old record":            {false, 0, old, old, true},
		"new record":            {false, 0, fresh, fresh, true},
		"the record gets an ID": {false, 0, old, named, true},
		"old record revoked":    {false, 0, old, revoked(old), false},
		"old record revoked, by an instance behind":        {false, late, old, revoked(old), false},
		"new record revoked":                               {false, 0, fresh, revoked(fresh), false},
		"new record revoked, by an instance behind":        {false, late, fresh, revoked(fresh), false},
		"revoked twice":                                    {false, late, revoked(fresh), revoked(revoked(fresh)), false},
		"old record, after the revocation":                 {false, 0, oldRevoked, oldRevoked, true},
		"new record, after the revocation":                 {false, 0, revoked(fresh), revoked(fresh), true},
		"after a revocation that is not known here":        {false, 0, revoked(fresh), fresh, true},
		"old record, a namesake in the same second":        {false, 0, old, namesake, false},
		"new record, a namesake in the same second":        {false, 0, fresh, namesake, false},
		"a namesake who is not known here":                 {false, 0, namesake, fresh, false},
		"stamp dropped by a command of an earlier release": {false, 0, fresh, dropped, false},
		"revocation and stamp dropped, from before":        {false, 0, old, dropped, false},
		"after the stamp was dropped":                      {false, late, dropped, dropped, true},
	} {
		for _, of := range []string{"client", "user"} {
			t.Run(name+", "+of, func(t *testing.T) {
				w := newWorld(t)
				issuer := *w
				if tt.earlier {
					issuer.reopen(earlierRelease)
				}
				w.record(of, tt.under)
				w.clock.Advance(tt.after)
				i, refreshed := issuer.issueAll(), issuer.mustToken("shop", refreshing(w.tokens("shop").RefreshToken))
				w.clock.Advance(-tt.after)
				w.record(of, tt.now)
				if !tt.good {
					w.wantDead(i)
				}
				w.wantActive(tt.good, i.AccessToken)
				w.wantActive(tt.good, i.RefreshToken)
				w.wantActive(tt.good, refreshed.AccessToken)
				w.wantActive(tt.good, refreshed.RefreshToken)
				w.wantActive(tt.good || of == "user", i.machine)
				_, err := w.service.Session(t.Context(), i.session)
				check.Equal(t, "session is good", err == nil, tt.good || of == "client")
			})
		}
	}
}

// record makes the registration that of the client shop, or of alice.
func (w *world) record(of string, r registration) {
	w.tb.Helper()
	if of == "client" {
		w.changeClient("shop", func(c *clientcfg.Client) { c.Stamp, c.CreatedAt, c.NotBefore = r.stamp, r.created, r.notBefore })
		if err := w.store.DeleteClient(w.tb.Context(), "shop"); !errors.Is(err, clientcfg.ErrNotFound) {
			check.OK(w.tb, err)
		}
		check.OK(w.tb, w.store.CreateClient(w.tb.Context(), *w.clients["shop"]))
		return
	}
	alice, err := w.store.User(w.tb.Context(), "alice")
	check.OK(w.tb, err)
	check.OK(w.tb, w.store.DeleteUser(w.tb.Context(), "alice"))
	alice.Stamp, alice.CreatedAt, alice.NotBefore = r.stamp, r.created, r.notBefore
	check.OK(w.tb, w.store.CreateUser(w.tb.Context(), alice))
}
