package grants_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// doorkeeper is a shedder that records the requests it was asked about, and refuses them while it is
// shut.
type doorkeeper struct {
	shut   bool
	asked  []overload.Request
	inside int
}

func (d *doorkeeper) Admit(_ context.Context, r *overload.Request) (overload.Rank, error) {
	d.asked = append(d.asked, *r)
	if d.shut {
		return 0, &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Processor}
	}
	d.inside++
	return 1, nil
}

func (d *doorkeeper) Leave() { d.inside-- }

func (d *doorkeeper) Starved(context.Context) error {
	return &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Processor}
}

func overloadedWorld(t *testing.T, edits ...func(*ratelimit.Settings)) (*world, *doorkeeper, *[]limiter.Decided) {
	t.Helper()
	w, seen := limitedWorld(t, edits...)
	shedder := &doorkeeper{}
	w.reopen(func(o *grants.Options) { o.Shedder = shedder })
	return w, shedder, seen
}

// TestOverloadedGrants: a request shed under overload gets a retry time, spends no quota, hashes no
// password, and leaves its code and refresh token valid.
func TestOverloadedGrants(t *testing.T) {
	w, shedder, seen := overloadedWorld(t)
	code, tokens := w.code("shop"), w.tokens("shop")
	requests := []grants.TokenRequest{
		refreshing(tokens.RefreshToken), w.redemption("shop", code), clientCredentials,
		{GrantType: "password", Username: "alice", Password: "wrong"},
	}
	decided := len(*seen)
	shedder.shut, shedder.asked = true, nil
	for range 5 { // more than any limit
		for _, req := range requests {
			_, err := w.token("shop", req)
			refused := check.As[*grants.Error](t, err)
			if refused.Code != oautherr.TemporarilyUnavailable || refused.RetryAfter != 7*time.Second {
				t.Errorf("%s: %v, retry after %v", req.GrantType, err, refused.RetryAfter)
			}
		}
	}
	_, err := w.service.Introspect(t.Context(), w.query("shop", tokens.AccessToken))
	check.Equal(t, "introspection", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	err = w.service.Revoke(t.Context(), w.query("shop", tokens.RefreshToken))
	check.Equal(t, "revocation", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	_, _, err = w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: "wrong"})
	check.Equal(t, "sign-in", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	check.Equal(t, "decisions of the limiter", len(*seen)-decided, 0)
	check.Equal(t, "requests inside", shedder.inside, 0)

	shedder.shut = false
	w.mustToken("shop", requests[0])
	w.mustToken("shop", requests[1])
	w.mustToken("shop", clientCredentials)
	check.Equal(t, "requests inside in the end", shedder.inside, 0)
}

// TestNothingStaysInside: every admitted request leaves the shedder, whatever its outcome.
func TestNothingStaysInside(t *testing.T) {
	w, shedder, _ := overloadedWorld(t)
	tokens := w.tokens("shop")
	query := w.query("shop", tokens.AccessToken)
	for name, send := range map[string]func() error{
		"introspection": func() error { _, err := w.service.Introspect(t.Context(), query); return err },
		"sign-in": func() error {
			_, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
			return err
		},
		"wrong sign-in": func() error {
			if _, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: "wrong"}); err == nil {
				return errors.New("a wrong password is accepted")
			}
			return nil
		},
		"client_credentials": func() error { _, err := w.token("shop", clientCredentials); return err },
	} {
		asked := len(shedder.asked)
		check.OK(t, send(), name)
		check.Equal(t, name+": asked", len(shedder.asked)-asked, 1)
		check.Equal(t, name+": inside", shedder.inside, 0)
	}
	check.OK(t, w.service.Revoke(t.Context(), query))
	check.Equal(t, "revocation: inside", shedder.inside, 0)
}

// TestGarbageIsNotCritical: a grant that this server has not issued is refused without asking the
// shedder, for every client. For a client that proves nothing, the shedder gets the source of the
// request.
func TestGarbageIsNotCritical(t *testing.T) {
	w, shedder, _ := overloadedWorld(t)
	code := w.code("app")
	shedder.asked, shedder.shut = nil, true
	for name, req := range map[string]grants.TokenRequest{
		"a guessed code": {GrantType: "authorization_code", Code: secret.New()},
		"garbage":        refreshing("garbage"), "none": refreshing(""), "another MAC": refreshing(strings.Repeat("A", 59)),
		"no code": {GrantType: "authorization_code"}, "garbage for a code": {GrantType: "authorization_code", Code: "garbage"},
		"no password": {GrantType: "password", Username: "alice"},
	} {
		for _, client := range []string{"shop", "app"} {
			if client == "app" && req.GrantType == "password" {
				continue // the client may not use the grant
			}
			_, err := w.token(client, req)
			if code := check.As[*grants.Error](t, err).Code; code != oautherr.InvalidGrant && code != oautherr.InvalidRequest {
				t.Errorf("%s of %s: %v", name, client, err)
			}
		}
	}
	check.Equal(t, "asked", len(shedder.asked), 0)
	remote := netip.MustParseAddr("192.0.2.7")
	_, err := w.token("app", grants.TokenRequest{GrantType: "authorization_code", Code: code, Remote: remote})
	check.Equal(t, "a code", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	check.Equal(t, "asked about", shedder.asked, []overload.Request{{ClientID: "app", Class: overload.Code, Source: limiter.SourceOf(remote)}})
}

// TestTooMuchGarbageIsNotCritical: an address with too many invalid grants is refused without
// asking the shedder.
func TestTooMuchGarbageIsNotCritical(t *testing.T) {
	w, shedder, _ := overloadedWorld(t)
	w.reopen(func(o *grants.Options) {
		o.InvalidGrants.PerAddress, o.InvalidGrants.PerName = ratelimit.NewLimit("a", 1, time.Minute), ratelimit.NewLimit("b", 1, time.Minute)
	})
	req := refreshing(secret.New())
	req.Remote = netip.MustParseAddr("192.0.2.7")
	for range 2 {
		if _, err := w.token("app", req); err == nil {
			t.Fatal("garbage is accepted")
		}
	}
	shedder.shut, shedder.asked = true, nil
	_, err := w.token("app", req)
	check.Equal(t, "limit", check.As[*oautherr.LimitedError](t, err).QuotaExceeded, false)
	check.Equal(t, "asked", len(shedder.asked), 0)
}

// TestOverloadSpendsNoQueries: a shed introspection does not count against the client's limit.
func TestOverloadSpendsNoQueries(t *testing.T) {
	w, shedder, _ := overloadedWorld(t)
	w.reopen(func(o *grants.Options) { o.Introspections = ratelimit.NewLimit("few", 1, time.Minute) })
	query := w.query("shop", "x")
	shedder.shut = true
	for range 3 {
		_, err := w.service.Introspect(t.Context(), query)
		check.Equal(t, "refused", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	}
	shedder.shut = false
	_, err := w.service.Introspect(t.Context(), query)
	check.OK(t, err)
}

// TestShedderIsAskedAboutProvenClients: the shedder sees only authenticated clients, with the values of
// their policies.
func TestShedderIsAskedAboutProvenClients(t *testing.T) {
	w, shedder, _ := overloadedWorld(t, policy("shop", ratelimit.Policy{Criticality: ratelimit.Sheddable}), policy("caller", ratelimit.Policy{Trusted: true}))
	w.mustToken("shop", clientCredentials)
	w.mustToken("caller", clientCredentials)
	w.mustToken("other", clientCredentials)
	wrong := clientCredentials
	wrong.Credentials = w.credentials("shop")
	wrong.Credentials.Secret = "wrong"
	if _, err := w.service.Token(t.Context(), wrong); err == nil {
		t.Fatal("a wrong secret is accepted")
	}
	want := []overload.Request{
		{ClientID: "shop", Class: overload.ClientCredentials, Criticality: ratelimit.Sheddable},
		{ClientID: "caller", Class: overload.ClientCredentials, Trusted: true},
		{ClientID: "other", Class: overload.ClientCredentials},
	}
	check.Equal(t, "asked about", shedder.asked, want)
}

// TestOverloadedStore: if the store sheds an operation, the response has its retry time.
func TestOverloadedStore(t *testing.T) {
	shed := &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Store}
	w, f := failingWorld(t)
	req := refreshing(w.tokens("shop").RefreshToken)
	f.Operation, f.Err = "Get grants", shed
	_, err := w.token("shop", req)
	failed := check.As[*grants.Error](t, err)
	check.Equal(t, "RetryAfter", failed.RetryAfter, shed.RetryAfter)
	check.Equal(t, "description", failed.Description, "The server is overloaded; retry after 7 seconds.")
	if check.As[*overload.ShedError](t, err) != shed {
		t.Error("the refusal is not the cause")
	}
}

// TestOverloadedReadOfClients: the same holds if waiting for the newest clients fails.
func TestOverloadedReadOfClients(t *testing.T) {
	w := newWorld(t)
	issued := w.tokens("shop")
	shed := &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Store}
	w.reopen(func(o *grants.Options) { o.Clients = stopped{w.clients, w.clients, shed} })
	_, err := w.service.Introspect(t.Context(), w.query("shop", issued.AccessToken))
	check.Equal(t, "RetryAfter of an introspection", check.As[*grants.Error](t, err).RetryAfter, shed.RetryAfter)
	_, err = w.token("shop", refreshing(newWorld(t).tokens("shop").RefreshToken))
	check.Equal(t, "RetryAfter of a refresh", check.As[*grants.Error](t, err).RetryAfter, shed.RetryAfter)
}

// starvedWorld is a world that cannot hash passwords while the server lacks processor time, and
// sheds sign-ins for that reason.
func starvedWorld(t *testing.T, edits ...func(*grants.Options)) (w *world, starved *bool, shed *[]overload.Request, shedder *overload.Shedder) {
	t.Helper()
	starved, shed = new(bool), new([]overload.Request)
	shedder = overload.New(overload.DefaultSettings(), func(r *overload.Request, o overload.Outcome) {
		check.Equal(t, "outcome", o, overload.Shed)
		*shed = append(*shed, *r)
	})
	passwords := testworld.Passwords(secret.PasswordOptions{Separate: func(task secret.Task) ([]byte, error) {
		if *starved {
			return nil, secret.ErrStarved
		}
		return testworld.FastHash(task)
	}})
	w = newWorld(t, append(edits, func(o *grants.Options) { o.SignIn.Passwords, o.Shedder = passwords, shedder })...)
	return w, starved, shed, shedder
}

// TestStarvedAttemptIsShed: attempts of a person and of a client are counted as shed, once each.
func TestStarvedAttemptIsShed(t *testing.T) {
	w, starved, shed, shedder := starvedWorld(t)
	*starved = true
	refused := check.As[*grants.Error](t, w.signIn(here, "alice", password))
	check.Equal(t, "code", refused.Code, oautherr.TemporarilyUnavailable)
	check.Equal(t, "to retry", refused.RetryAfter > 0, true)
	_, err := w.token("shop", byPassword("alice", password))
	check.Equal(t, "for want of", check.As[*overload.ShedError](t, err).Short, overload.Processor)
	check.Equal(t, "shed", *shed, []overload.Request{{Class: overload.SignIn}, {ClientID: "shop", Class: overload.Password}})
	check.Equal(t, "in flight in the end", shedder.Stats().InFlight, 0)
}

// TestLongLineShedsNobody: an attempt refused because too many people sign in is reported as busy,
// not as shed.
func TestLongLineShedsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, shed, _ := starvedWorld(t)
		passwords := testworld.Passwords(secret.PasswordOptions{Concurrency: 1})
		w.reopen(func(o *grants.Options) { o.SignIn.Passwords = passwords })
		defer testworld.TakeHashingSlot(t, passwords)()
		busy := check.As[*secret.BusyError](t, w.signIn(here, "alice", password))
		check.Equal(t, "starved", busy.Starved, false)
		check.Equal(t, "shed", len(*shed), 0)
	})
}

// TestStoreIsCalledWithTheRank: store calls carry the rank that the shedder gave the request, for
// priority in the store's queue.
func TestStoreIsCalledWithTheRank(t *testing.T) {
	w := newWorld(t)
	code, tokens := w.code("shop"), w.tokens("shop")
	store := w.fail(func(o *grants.Options) { o.Shedder = &doorkeeper{} })
	query := w.query("shop", tokens.AccessToken)
	token := func(req grants.TokenRequest) func() error {
		return func() error { _, err := w.token("shop", req); return err }
	}
	for _, tt := range []struct {
		name string
		send func() error
	}{
		{"code", token(w.redemption("shop", code))},
		{"refresh token", token(refreshing(tokens.RefreshToken))},
		{"password", token(byPassword("alice", password))},
		{"introspection", func() error { _, err := w.service.Introspect(t.Context(), query); return err }},
		{"sign-in", func() error {
			_, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
			return err
		}},
		{"revocation", func() error { return w.service.Revoke(t.Context(), query) }},
	} {
		store.Rank = 0
		check.OK(t, tt.send(), tt.name)
		check.Equal(t, tt.name, store.Rank, overload.Rank(1)) // the rank from doorkeeper
	}
}
