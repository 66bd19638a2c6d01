// Package testworld holds the fixtures that the tests of several packages share: a settable clock,
// a store on a fresh file, clients in memory, two users who can sign in, a taken hashing slot and an
// unused address. Only tests import it.
package testworld

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/app/repositories"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/bolt"
)

// Noon is the initial time of a [Clock].
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Clock is a clock that tests advance. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	since time.Duration // since Noon
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Noon.Add(c.since)
}

// Advance advances the clock by d.
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

// Policies returns a snapshot of a policy set on top of a configuration file.
func Policies(tb testing.TB, file ratelimit.Settings, set clientcfg.PolicySet) *clientcfg.PolicySnapshot {
	tb.Helper()
	e := clientcfg.Event{Number: set.Version}
	put := func(target string, v clientcfg.Value) {
		c, err := clientcfg.SetTarget(target, &v)
		if err != nil {
			tb.Fatal(err)
		}
		e.Changes = append(e.Changes, c)
	}
	put(clientcfg.SettingsTarget, set.Settings)
	for target, v := range set.All() {
		put(target, v)
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

// Tried returns a policy set that has only the candidate for a client, or for all.
func Tried(name string, candidate clientcfg.Value) (set clientcfg.PolicySet) {
	e := set.Candidates.Edit()
	e.Set(name, candidate)
	set.Candidates = e.Map()
	return set
}

// Clients are clients by their client_id. They implement [grants.Clients].
type Clients map[string]*clientcfg.Client

// Client returns the client of that client_id.
func (c Clients) Client(id string) (*clientcfg.Client, bool) {
	found, ok := c[id]
	return found, ok
}

// Renew does nothing, because the clients are always current.
func (c Clients) Renew(context.Context, time.Duration) error { return nil }

// MustBeValid fails the test if a client is invalid for registration.
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

// Passwords hashes passwords with [FastHash], unless opts have another Separate. Only they accept
// [Password] for the users of [AddUsers].
func Passwords(opts secret.PasswordOptions) *secret.Passwords {
	if opts.Separate == nil {
		opts.Separate = FastHash
	}
	return secret.NewPasswords(opts)
}

// FastHash computes a hash that is not expensive, and has the form of one that is.
func FastHash(t secret.Task) ([]byte, error) {
	if !t.Own() {
		return t.Do(), nil
	}
	password := sha256.Sum256([]byte(t.Password)) // HMAC pads its key with zeros
	return pbkdf2.Key(sha256.New, string(password[:]), t.Salt, 1, t.Length)
}

var passwordHash = sync.OnceValues(func() (string, error) {
	return Passwords(secret.PasswordOptions{}).Hash(context.Background(), Password) //nolint:forbidigo // computed once for all tests
})

// AddUsers adds alice and bob, created at that time. They have stamps and sign in
// with [Password] at services that have [Passwords].
func AddUsers(tb testing.TB, users *accounts.Users, created time.Time) {
	tb.Helper()
	hash, err := passwordHash()
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range []string{"alice", "bob"} {
		user := accounts.User{Name: name, PasswordHash: hash, CreatedAt: created, Stamp: secret.NewStamp()}
		if err := users.CreateUser(tb.Context(), user, clientcfg.Event{}); err != nil {
			tb.Fatal(err)
		}
	}
}

// TakeHashingSlot holds the only hashing slot of passwords until giveBack is called, which may be
// called again.
func TakeHashingSlot(tb testing.TB, passwords *secret.Passwords) (giveBack func()) {
	tb.Helper()
	errGivenBack := errors.New("testworld: the slot was given back")
	taken, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- passwords.RejectAttempt(tb.Context(), secret.Attempt{
			Name: "the one who has it", Source: "nowhere",
			Still: func() error { close(taken); <-release; return errGivenBack },
		})
	}()
	<-taken
	return sync.OnceFunc(func() {
		close(release)
		if err := <-ended; !errors.Is(err, errGivenBack) {
			tb.Errorf("the holder of the slot: %v", err)
		}
	})
}

// Deriver is an [accounts.Deriver] without a key.
type Deriver struct{}

// Derive implements [accounts.Deriver].
func (Deriver) Derive(purpose, from string) string {
	sum := sha256.Sum256([]byte(purpose + "\x00" + from))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// FreeAddress returns an address of this machine with an unused port, for a server that needs to
// know its address before it listens.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	return FreeAddressOf(tb, "127.0.0.1")
}

// FreeAddressOf is FreeAddress for another IP address of this machine. A port that is unused on one
// address may be in use on another. Ports are below the range that systems give to outgoing
// connections: one of these could have the port while a server restarts.
func FreeAddressOf(tb testing.TB, ip string) string {
	tb.Helper()
	for tries := 0; ; tries++ {
		address := net.JoinHostPort(ip, strconv.Itoa(11_000+rand.IntN(20_000))) //nolint:gosec // a port for a test
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address)
		if err != nil && tries < 100 {
			continue
		}
		if err != nil {
			tb.Fatal(err)
		}
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
		return address
	}
}
