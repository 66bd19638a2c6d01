package accounts_test

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = testworld.Password

var (
	start     = testworld.Noon
	here      = netip.MustParseAddr("192.0.2.1")
	elsewhere = netip.MustParseAddr("198.51.100.7")
	errDown   = errors.New("store: down")
)

// world is a service and its environment.
type world struct {
	tb      testing.TB
	service *accounts.Service
	opts    accounts.Options
	store   *testworld.Store
	clock   *testworld.Clock
}

func newWorld(tb testing.TB, edits ...func(*accounts.Options)) *world {
	tb.Helper()
	w := &world{tb: tb, clock: &testworld.Clock{}, store: testworld.OpenStore(tb, filepath.Join(tb.TempDir(), "test.db"))}
	testworld.AddUsers(tb, w.store.Users, start.Add(-time.Hour))
	w.opts = accounts.Options{
		Users: w.store.Users, Records: accounts.NewRepository(w.store), Passwords: testworld.Passwords(secret.PasswordOptions{}),
		Deriver: testworld.Deriver{}, Now: w.clock.Now,
	}
	w.reopen(edits...)
	return w
}

// reopen recreates the service with changed options.
func (w *world) reopen(edits ...func(*accounts.Options)) {
	w.tb.Helper()
	for _, edit := range edits {
		edit(&w.opts)
	}
	var err error
	w.service, err = accounts.New(w.opts)
	check.OK(w.tb, err)
}

// failingWorld is a world with a failing store.
func failingWorld(tb testing.TB, edits ...func(*accounts.Options)) (*world, *testworld.Failing) {
	tb.Helper()
	w := newWorld(tb, edits...)
	f := &testworld.Failing{Backend: w.store.Store}
	w.reopen(func(o *accounts.Options) {
		o.Users, o.Records = accounts.NewUsers(w.store.Follower, f), accounts.NewRepository(f)
	})
	return w, f
}

// changeUser changes alice.
func (w *world) changeUser(edit func(u *accounts.User)) {
	w.tb.Helper()
	check.OK(w.tb, w.store.ChangeUser(w.tb.Context(), "alice", func(u *accounts.User) (clientcfg.Event, error) {
		edit(u)
		return clientcfg.Event{}, nil
	}))
}

// revokeUser revokes alice.
func (w *world) revokeUser() { w.changeUser(func(u *accounts.User) { u.Stamp = u.Stamp.Revoked() }) }

func (w *world) signIn(from netip.Addr, name, pw string) error {
	_, _, err := w.service.SignIn(w.tb.Context(), accounts.SignIn{Username: name, Password: pw, Remote: from})
	return err
}

// strict allows 5 failures a minute from an address, 3 of them with the same name.
func strict(o *accounts.Options) { o.Failures = attempts.NewLimits(5, 3, time.Minute) }

// wantTooMany checks the error for too many failures.
func wantTooMany(t *testing.T, err error) (retryAfter time.Duration) {
	t.Helper()
	limited := check.As[*oautherr.LimitedError](t, err)
	want := fmt.Sprintf("Too many failed attempts from this address; retry after %d second", int(limited.RetryAfter/time.Second))
	if !strings.HasPrefix(limited.Description(), want) {
		t.Errorf("description %q, want %q first", limited.Description(), want)
	}
	return limited.RetryAfter
}
