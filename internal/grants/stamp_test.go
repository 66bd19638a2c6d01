package grants_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
	datastore "oauth-server/internal/store"
)

// issued has one of each kind of grant and token that can be revoked, all for alice and the client
// shop, and a session.
type issued struct {
	grants.TokenResponse
	code, session, machine string
}

func (w *world) issueAll() issued {
	w.tb.Helper()
	cookie, _, err := w.service.SignIn(w.tb.Context(), accounts.SignIn{Username: "alice", Password: password})
	check.OK(w.tb, err)
	return issued{
		TokenResponse: w.tokens("shop"), code: w.code("shop"), session: cookie,
		machine: w.mustToken("shop", clientCredentials).AccessToken,
	}
}

// wantDead fails the test unless everything that alice got through shop is worthless.
func (w *world) wantDead(i issued) {
	w.tb.Helper()
	w.wantActive(false, i.AccessToken)
	w.wantActive(false, i.RefreshToken)
	_, err := w.service.Bearer(w.tb.Context(), i.AccessToken)
	check.ErrorIs(w.tb, err, grants.ErrBearer)
	w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(i.RefreshToken))
	w.wantRefused(oautherr.InvalidGrant, "shop", w.redemption("shop", i.code))
}

// TestRevokedUser: a revocation ends everything from earlier sign-ins, whatever the clocks of the
// instances are, and nothing from later ones, even at the same moment.
func TestRevokedUser(t *testing.T) {
	w := newWorld(t)
	before := w.issueAll()
	w.clock.Advance(time.Hour) // another instance's clock is ahead
	ahead := w.issueAll()
	w.clock.Advance(-time.Hour)
	w.revokeUser()
	for _, i := range []issued{before, ahead} {
		w.wantDead(i)
		_, err := w.service.Session(t.Context(), i.session)
		check.ErrorIs(t, err, accounts.ErrNoSession)
		w.wantActive(true, i.machine) // no user is involved
	}

	// A sign-in at the same moment counts as after the revocation, with everything issued under it.
	cookie, session, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	_, err = w.service.Session(t.Context(), cookie)
	check.OK(t, err)
	prompt := w.prompted("shop")
	code, err := w.approve(prompt, session)
	check.OK(t, err)
	for _, tokens := range []grants.TokenResponse{
		w.mustToken("shop", w.redemption("shop", code)),
		w.mustToken("shop", byPassword("alice", password)),
	} {
		w.wantActive(true, tokens.AccessToken)
		w.wantActive(true, w.mustToken("shop", refreshing(tokens.RefreshToken)).AccessToken)
	}
}

// TestRevokedClient: everything issued to a client before is worthless, and everything issued from
// then on is valid, even at the same moment.
func TestRevokedClient(t *testing.T) {
	w := newWorld(t)
	before := w.issueAll()
	w.clock.Advance(time.Hour) // another instance's clock is ahead
	ahead := w.issueAll()
	w.clock.Advance(-time.Hour)
	w.revokeClient("shop")
	for _, i := range []issued{before, ahead} {
		w.wantDead(i)
		w.wantActive(false, i.machine)
		_, err := w.service.Bearer(t.Context(), i.machine)
		check.ErrorIs(t, err, grants.ErrBearer)
		_, err = w.service.Session(t.Context(), i.session) // the session belongs to the user, not the client
		check.OK(t, err)
	}
	after := w.issueAll()
	w.wantActive(true, after.machine)
	w.wantActive(true, after.AccessToken)
	w.wantActive(true, w.mustToken("shop", refreshing(after.RefreshToken)).AccessToken)
	w.mustToken("shop", w.redemption("shop", after.code))
}

// TestInstanceBehind: an instance that has yet to learn of a client's revocation, however late,
// issues nothing that other instances accept. It accepts what they issue, and asks the client to
// wait rather than exchange it.
//
// Attack (revocation): An instance cut off from the database. Other instances refuse tokens it
// issues to revoked clients. Also cli.TestFrozenInstanceIssuesNothingOfWorth,
// grants.TestStoppedInstance.
func TestInstanceBehind(t *testing.T) {
	w := newWorld(t)
	w.changeClient("shop", func(c *clientcfg.Client) { c.Stamp = secret.NewStamp() })
	behind := *w
	behind.clients = maps.Clone(w.clients)
	behind.reopen(func(o *grants.Options) { o.Clients = behind.clients })
	w.revokeClient("shop")
	check.OK(t, w.store.CreateClient(t.Context(), *w.clients["shop"], clientcfg.Event{}))
	w.clock.Advance(time.Hour)
	for range 2 { // the second time with a grant that the first one issued
		frozen := behind.issueAll()
		behind.wantActive(true, frozen.AccessToken)
		w.wantActive(false, frozen.machine)
		w.wantDead(frozen)
	}
	good := w.issueAll()
	behind.wantActive(true, good.machine)
	behind.wantActive(true, good.AccessToken)
	behind.wantActive(true, good.RefreshToken)
	for _, req := range []grants.TokenRequest{w.redemption("shop", good.code), refreshing(good.RefreshToken)} {
		behind.wantRefused(oautherr.TemporarilyUnavailable, "shop", req, "retry after 2 seconds")
		w.wantActive(true, w.mustToken("shop", req).AccessToken)
	}
}

// TestRevokedDuringASignIn: if the user is revoked while the old password is checked, nobody is
// signed in, however long the check takes.
func TestRevokedDuringASignIn(t *testing.T) {
	w, f := failingWorld(t)
	f.Meanwhile("Get users", func() {
		w.revokeUser()
		w.clock.Advance(12 * time.Second)
	})
	cookie, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	_, err = w.service.Session(t.Context(), cookie)
	check.ErrorIs(t, err, accounts.ErrNoSession)
}

// stopped are the clients of an instance that was paused and has yet to read the changes.
type stopped struct {
	testworld.Clients
	newest testworld.Clients
	err    error
}

func (s stopped) Renew(context.Context, time.Duration) error {
	if s.err == nil {
		maps.Copy(s.Clients, s.newest)
	}
	return s.err
}

// TestStoppedInstance: before an instance reports that a token is valid, it reads the changes that
// it missed, or returns an error if it cannot.
func TestStoppedInstance(t *testing.T) {
	w := newWorld(t)
	behind := *w
	clients := stopped{maps.Clone(w.clients), w.clients, nil}
	i := w.issueAll()
	w.revokeClient("shop")
	clients.err = errDown
	behind.reopen(func(o *grants.Options) { o.Clients = clients })
	query := w.query("shop", i.AccessToken)
	_, err := behind.service.Introspect(t.Context(), query)
	wantCode(t, oautherr.TemporarilyUnavailable, err)
	_, err = behind.service.Bearer(t.Context(), i.machine)
	wantCode(t, oautherr.TemporarilyUnavailable, err)
	clients.err = nil
	behind.reopen(func(o *grants.Options) { o.Clients = clients })
	behind.wantActive(false, i.AccessToken)
	_, err = behind.service.Bearer(t.Context(), i.machine)
	check.ErrorIs(t, err, grants.ErrBearer)
}

// emptied are the clients of an instance with a store that has just lost its data. A moment ago
// they were current.
type emptied struct{ testworld.Clients }

func (emptied) Renew(_ context.Context, atMost time.Duration) error {
	if atMost > 0 {
		return nil
	}
	return errDown
}

// TestStoreWithoutItsData: no token is refused because the store has lost its data, not even right
// after the loss.
func TestStoreWithoutItsData(t *testing.T) {
	for _, operation := range []string{"Get grants", "Get users", "Put grants"} {
		w, store := failingWorld(t)
		issued := w.tokens("shop")
		store.Operation, store.Err = operation, datastore.ErrNotFound
		w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(issued.RefreshToken))
		if operation == "Get users" {
			w.wantActive(false, issued.AccessToken)
		}
		w.reopen(func(o *grants.Options) { o.Clients = emptied{w.clients} })
		w.wantRefused(oautherr.TemporarilyUnavailable, "shop", refreshing(issued.RefreshToken))
		if operation == "Get users" {
			_, err := w.service.Introspect(t.Context(), w.query("shop", issued.AccessToken))
			wantCode(t, oautherr.TemporarilyUnavailable, err)
		}
		store.Operation = ""
		w.mustToken("shop", refreshing(issued.RefreshToken))
	}
}

// TestMarkLost: while an instance reloads all clients, it reads the token's client from the store.
func TestMarkLost(t *testing.T) {
	w, store := failingWorld(t)
	machine := func(id string) string {
		return w.mustToken(id, clientCredentials).AccessToken
	}
	revoked, good, invalid, unknown := machine("shop"), machine("caller"), machine("daemon"), machine("other")
	behind := *w
	clients := stopped{maps.Clone(w.clients), w.clients, fmt.Errorf("read changes: %w", datastore.ErrMarkLost)}
	w.revokeClient("shop")
	broken := *w.clients["daemon"]
	broken.Grants = nil
	check.OK(t, errors.Join(w.store.CreateClient(t.Context(), *w.clients["shop"], clientcfg.Event{}),
		w.store.CreateClient(t.Context(), *w.clients["caller"], clientcfg.Event{}), w.store.CreateClient(t.Context(), broken, clientcfg.Event{})))
	behind.reopen(func(o *grants.Options) { o.Clients = clients })
	behind.wantActive(false, revoked)
	behind.wantActive(true, good)
	behind.wantActive(false, invalid)
	behind.wantActive(false, unknown)
	store.Operation, store.Err = "Client", errDown
	_, err := behind.service.Introspect(t.Context(), w.query("shop", good))
	wantCode(t, oautherr.TemporarilyUnavailable, err)
}
