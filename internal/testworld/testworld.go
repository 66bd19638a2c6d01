// Package testworld holds what the tests of several packages build their worlds from: a clock that
// tests turn, a store on a fresh file, clients in memory, two people who can sign in and an unused
// address. Nothing but tests imports it.
package testworld

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/repositories"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/bolt"
)

// Noon is the time at which a [Clock] begins.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Clock is a clock that tests turn. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	since time.Duration // since Noon
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Noon.Add(c.since)
}

// Advance turns the clock on by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since += d
}

// Store is a store on a file, with its repositories.
type Store struct {
	*bolt.Store
	repositories.All
}

// OpenStore opens a store on the file and closes it when the test ends.
func OpenStore(tb testing.TB, file string) *Store {
	tb.Helper()
	store, err := bolt.Open(file, bolt.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	repositories, err := repositories.On(tb.Context(), store)
	if err != nil {
		tb.Fatal(err)
	}
	return &Store{store, repositories}
}

// Policies returns the snapshot of a set on top of a configuration file.
func Policies(tb testing.TB, file ratelimit.Settings, set clientcfg.PolicySet) *clientcfg.PolicySnapshot {
	tb.Helper()
	e := clientcfg.Event{Number: set.Version}
	put := func(c clientcfg.Change, err error) {
		if err != nil {
			tb.Fatal(err)
		}
		e.Changes = append(e.Changes, c)
	}
	put(clientcfg.ChangeSettings(set.Settings))
	for id, p := range set.Clients.All() {
		put(clientcfg.ChangePolicy(id, &p))
	}
	for name, c := range set.Candidates.All() {
		put(clientcfg.ChangeCandidate(name, &c))
	}
	for name, t := range set.Tiers.All() {
		put(clientcfg.ChangeTier(name, &t))
	}
	for key, o := range set.Overrides.All() {
		id, username, _ := strings.Cut(key, " ")
		put(clientcfg.ChangeOverride(id, username, &o))
	}
	p, err := clientcfg.FixedPolicies(file)
	if err == nil {
		p, err = p.Apply(&e)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Clients are clients by their client_id. They implement [grants.Clients].
type Clients map[string]*clientcfg.Client

// Client returns the client of that client_id.
func (c Clients) Client(id string) (*clientcfg.Client, bool) {
	found, ok := c[id]
	return found, ok
}

// Renew has nothing to do: these are always the newest.
func (c Clients) Renew(context.Context, time.Duration) error { return nil }

// MustBeValid fails the test if a client could not be registered as it is.
func (c Clients) MustBeValid(tb testing.TB) {
	tb.Helper()
	for _, client := range c {
		if err := client.Validate(); err != nil {
			tb.Fatal(err)
		}
	}
}

// Password is the password of all users.
const Password = "correct horse battery staple"

// passwordHash is computed once, because it is slow on purpose.
var passwordHash = sync.OnceValues(func() (string, error) {
	return secret.NewPasswords(secret.PasswordOptions{}).Hash(context.Background(), Password)
})

// AddUsers adds alice and bob, who sign in with [Password] and were created at that time, with stamps.
func AddUsers(tb testing.TB, store grants.UserRegistry, created time.Time) {
	tb.Helper()
	hash, err := passwordHash()
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range []string{"alice", "bob"} {
		user := grants.User{Name: name, PasswordHash: hash, CreatedAt: created, Stamp: secret.NewStamp()}
		if err := store.CreateUser(tb.Context(), user, clientcfg.Event{}); err != nil {
			tb.Fatal(err)
		}
	}
}

// FreeAddress returns an address of this machine with an unused port, for a server whose address
// must be known before it listens.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	return FreeAddressOf(tb, "127.0.0.1")
}

// FreeAddressOf is FreeAddress for another IP address of this machine. A port that is unused on one
// may be used on the other.
func FreeAddressOf(tb testing.TB, ip string) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		tb.Fatal(err)
	}
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	return l.Addr().String()
}
