package grants_test

import (
	"context"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
)

// issued is one of each kind that can be revoked, all of alice and the client shop, and a session.
type issued struct {
	grants.TokenResponse
	code, session, machine string
}

func (w *world) issueAll() issued {
	w.tb.Helper()
	cookie, _, err := w.service.SignIn(w.tb.Context(), grants.SignIn{Username: "alice", Password: password})
	check.OK(w.tb, err)
	return issued{
		TokenResponse: w.tokens("shop"), code: w.code("shop"), session: cookie,
		machine: w.mustToken("shop", grants.TokenRequest{GrantType: "client_credentials"}).AccessToken,
	}
}

// wantDead fails the test unless everything that alice got through shop is worthless.
func (w *world) wantDead(i issued) {
	w.tb.Helper()
	w.wantActive(false, i.AccessToken)
	w.wantActive(false, i.RefreshToken)
	_, err := w.service.Bearer(w.tb.Context(), i.AccessToken)
	wantErr(w.tb, err, grants.ErrBearer)
	_, err = w.token("shop", refreshing(i.RefreshToken))
	wantCode(w.tb, grants.InvalidGrant, err)
	_, err = w.token("shop", w.redemption("shop", i.code))
	wantCode(w.tb, grants.InvalidGrant, err)
}

// TestRevokedUser: a revocation that ends in the future takes all that came of an earlier sign-in, on
// instances whose clocks are ahead by less too, and nothing that comes of a later one.
func TestRevokedUser(t *testing.T) {
	w := newWorld(t)
	before := w.issueAll()
	w.clock.Advance(9 * time.Second) // another instance is ahead
	ahead := w.issueAll()
	w.clock.Advance(-9 * time.Second)
	until := w.clock.Now().Add(10 * time.Second)
	check.OK(t, w.store.ChangeUser(t.Context(), "alice", grants.UserChange{NotBefore: until}))
	for _, i := range []issued{before, ahead} {
		w.wantDead(i)
		_, err := w.service.Session(t.Context(), i.session)
		wantErr(t, err, grants.ErrNoSession)
		w.wantActive(true, i.machine) // no user has part in it
	}

	// A sign-in at once is one after the revocation, and so is all that comes of it.
	cookie, session, err := w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	check.Equal(t, "session.CreatedAt", session.CreatedAt, until)
	_, err = w.service.Session(t.Context(), cookie)
	check.OK(t, err)
	prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
	check.OK(t, err)
	code, err := w.approve(prompt, session)
	check.OK(t, err)
	for _, tokens := range []grants.TokenResponse{
		w.mustToken("shop", w.redemption("shop", code)),
		w.mustToken("shop", grants.TokenRequest{GrantType: "password", Username: "alice", Password: password}),
	} {
		w.wantActive(true, tokens.AccessToken)
		w.wantActive(true, w.mustToken("shop", refreshing(tokens.RefreshToken)).AccessToken)
	}
}

// TestRevokedClient: what was issued to a client before is worthless, nothing is issued that would be,
// and the client may authenticate all the same.
func TestRevokedClient(t *testing.T) {
	w := newWorld(t)
	before := w.issueAll()
	// An instance that has yet to learn of it, and one whose clock is ahead, issue some more.
	w.clock.Advance(3 * time.Second)
	late := w.issueAll()
	w.clock.Advance(-2 * time.Second)
	w.clients["shop"].NotBefore = start.Add(10 * time.Second)
	_, err := w.token("shop", grants.TokenRequest{GrantType: "client_credentials"})
	wantCode(t, grants.TemporarilyUnavailable, err)
	check.ErrorSays(t, err, "retry after 9 seconds")
	prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
	check.OK(t, err)
	_, err = w.approve(prompt, w.session()) // the code would be worthless too
	wantCode(t, grants.TemporarilyUnavailable, err)
	for _, i := range []issued{before, late} {
		w.wantActive(false, i.machine)
		w.wantActive(false, i.AccessToken)
		_, err := w.service.Bearer(t.Context(), i.machine)
		wantErr(t, err, grants.ErrBearer)
	}
	w.clock.Advance(9 * time.Second)
	for _, i := range []issued{before, late} {
		w.wantDead(i)
		w.wantActive(false, i.machine)
		_, err := w.service.Session(t.Context(), i.session) // that of the user, not of the client
		check.OK(t, err)
	}
	after := w.issueAll()
	w.wantActive(true, after.machine)
	w.wantActive(true, after.AccessToken)
	w.wantActive(true, w.mustToken("shop", refreshing(after.RefreshToken)).AccessToken)
	w.mustToken("shop", w.redemption("shop", after.code))
}

// slowSignIn is a store whose users change after they were read, while their password is checked.
type slowSignIn struct {
	grants.Store
	meanwhile func()
}

func (s slowSignIn) User(ctx context.Context, name string) (grants.User, error) {
	u, err := s.Store.User(ctx, name)
	s.meanwhile()
	return u, err
}

// TestRevokedDuringASignIn: a check of the old password that takes longer than the margin of the
// revocation, because the process was stopped say, signs no one in.
func TestRevokedDuringASignIn(t *testing.T) {
	meanwhile := func() {}
	w := newWorld(t, func(o *grants.Options) {
		o.Store = slowSignIn{Store: o.Store, meanwhile: func() { meanwhile() }}
	})
	meanwhile = func() {
		meanwhile = func() {}
		check.OK(t, w.store.ChangeUser(t.Context(), "alice", grants.UserChange{NotBefore: start.Add(10 * time.Second)}))
		w.clock.Advance(12 * time.Second)
	}
	cookie, _, err := w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	_, err = w.service.Session(t.Context(), cookie)
	wantErr(t, err, grants.ErrNoSession)
}

// TestRevokedWithinASecond: times in tokens are whole seconds, so what was issued in the same second
// as the revocation ends with it.
func TestRevokedWithinASecond(t *testing.T) {
	w := newWorld(t)
	w.clock.Advance(900 * time.Millisecond)
	before := w.issueAll()
	w.clients["shop"].NotBefore = start.Add(time.Second)
	w.clock.Advance(100 * time.Millisecond)
	w.wantDead(before)
	w.wantActive(true, w.tokens("shop").AccessToken)
}
