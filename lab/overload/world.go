package overload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/repositories"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/bolt"
	"oauth-server/lab/machine"
	"oauth-server/lab/servers"
)

const (
	clients     = 16 // of each kind
	users       = 32
	greedy      = "greedy"
	greedyLimit = 20 // requests a second
	overLimit   = 50 // times its limit that the greedy client sends
	password    = "a quiet harbour at four in the morning"
	redirectURI = "http://127.0.0.1/callback"
	codeTTL     = 10 * time.Minute
	spare       = 100 // codes that are under way when there are enough refresh tokens
)

// random returns the random bytes of a code.
func random() []byte {
	b := make([]byte, 20)
	_, _ = rand.Read(b) // which never fails
	return b
}

func shop(n int) string { return fmt.Sprintf("shop-%d", n%clients) }
func web(n int) string  { return fmt.Sprintf("web-%d", n%clients) }
func user(n int) string { return fmt.Sprintf("user-%d", n%users) }

// config is the configuration of the server: no client of the mix gets near its limit, nor do failed attempts.
func config(control string) string {
	text := fmt.Sprintf(`log: { level: error }
tokens: { code_ttl: %s, refresh_grace: 10m } # callers who hung up come again with the token that they have
passwords: { sign_ins_per_minute: 1000000 }
failed_attempts:
  clients: { per_address: 1000000000, per_name: 1000000000 }
  users: { per_address: 1000000000, per_name: 1000000000, per_name_daily: 1000000000, slow_after: 1000000000 }
rate_limit:
  default:
    client: [ { name: ample, requests: 1000000, window: 10s } ]
    user: [ { name: ample, requests: 1000000, window: 10s } ]
  clients: { %s: { client: [ { name: tight, requests: %d, window: 10s } ] } }
`, codeTTL, greedy, 10*greedyLimit)
	if control != "" {
		text += fmt.Sprintf("overload: { mode: %q }\n", control)
	}
	return text
}

// world is the server and those who ask it.
type world struct {
	tb     testing.TB
	store  *servers.Store
	server *servers.Server
	core   int           // of the generator
	quiet  time.Duration // how long other programs are waited for at most

	codes    []grant  // not redeemed yet
	families []*grant // of refresh tokens
}

// grant is a code, or a refresh token in its place, and who redeems it.
type grant struct {
	client string
	secret string // the code or the refresh token
}

// inMemory returns a directory in memory, so that no disk is measured.
func inMemory(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "overload-*") //nolint:usetesting // tb.TempDir is on a disk
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, core: machine.AnyCore}
	if _, measured := tb.(*testing.B); measured {
		w.core = machine.GeneratorCore
	}
	var all []servers.Registration
	for n := range clients {
		all = append(all, servers.Registration{Name: shop(n), Grants: []string{"client_credentials", "password"}},
			servers.Registration{Name: web(n), Flags: []string{"--redirect-uri=" + redirectURI, "--first-party", "--without-pkce"}})
	}
	all = append(all, servers.Registration{Name: greedy, Grants: []string{"client_credentials"}})
	for n := range users {
		all = append(all, servers.Registration{Name: user(n), Password: password})
	}
	w.store = servers.NewStore(tb, inMemory(tb), all...)
	return w
}

// knowsControl reports whether the server has admission control.
func (w *world) knowsControl() bool { return w.store.Knows(w.tb, config("enforce")) }

// serve starts the server with that many codes in its store, and that many refresh tokens given out.
func (w *world) serve(control string, codes, families int) error {
	w.stop()
	if err := w.makeCodes(codes + families + spare); err != nil {
		return fmt.Errorf("make codes: %w", err)
	}
	w.server = w.store.Serve(w.tb, config(control))
	w.families = nil
	return w.redeem(families)
}

func (w *world) stop() {
	if w.server != nil {
		if err := w.server.Stop(); err != nil {
			w.tb.Error(err)
		}
		w.server = nil
	}
}

// makeCodes puts codes into the store while no server has it.
func (w *world) makeCodes(n int) (err error) {
	ctx := w.tb.Context()
	store, err := bolt.Open(w.store.File, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	repositories, err := repositories.On(ctx, store)
	if err != nil {
		return err
	}
	mac, err := keys.OpenMAC(ctx, repositories, keys.Secrets{}, nil)
	if err != nil {
		return err
	}
	clientStamps, userStamps, err := stamps(ctx, repositories)
	if err != nil {
		return err
	}
	w.codes = make([]grant, n)
	const writers = 64 // they share the commits of the store
	errs := make([]error, writers)
	var wg sync.WaitGroup
	now := time.Now()
	for first := range writers {
		wg.Go(func() {
			for i := first; i < n && errs[first] == nil; i += writers {
				w.codes[i] = grant{web(i), grants.SealCode(mac, random())}
				errs[first] = grants.NewRepository(store).CreateCode(ctx, grants.Code{
					Authorization: grants.Authorization{
						ClientID: w.codes[i].client, Username: user(i), Scopes: []string{"read"}, Family: secret.ID(), AuthTime: now,
						UserStamp: userStamps[i%users],
					},
					ClientStamp: clientStamps[i%clients],
					Digest:      secret.DigestOf(w.codes[i].secret), RedirectURI: redirectURI, IssuedAt: now, ExpiresAt: now.Add(codeTTL),
				})
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// takeCode returns a code that is not redeemed yet.
func (w *world) takeCode() (grant, bool) {
	if len(w.codes) == 0 {
		return grant{}, false
	}
	g := w.codes[0]
	w.codes = w.codes[1:]
	return g, true
}

func (w *world) codeRequest(g grant) []byte {
	return w.server.Request(g.client, w.server.Secrets[g.client], url.Values{
		"grant_type": {"authorization_code"}, "code": {g.secret}, "redirect_uri": {redirectURI},
	}.Encode())
}

// redeem redeems codes for the refresh tokens that the load begins with.
func (w *world) redeem(n int) error {
	if n == 0 {
		return nil
	}
	s := &redeemer{world: w}
	ctx, cancel := context.WithCancel(w.tb.Context())
	defer cancel()
	s.enough = func() {
		if len(w.families) >= n {
			cancel()
		}
	}
	_, err := s.run(ctx)
	if len(w.families) < n {
		return errors.Join(err, fmt.Errorf("%d of %d codes were redeemed; %s", len(w.families), n, s.failure))
	}
	return nil
}

// stamps returns the stamps of the clients that redeem codes and of the users, in their order.
func stamps(ctx context.Context, r repositories.All) (ofClients [clients]secret.Stamp, ofUsers [users]secret.Stamp, err error) {
	for n := range ofClients {
		c, err := r.Client(ctx, web(n))
		if err != nil {
			return ofClients, ofUsers, err
		}
		ofClients[n] = c.Stamp
	}
	for n := range ofUsers {
		u, err := r.User(ctx, user(n))
		if err != nil {
			return ofClients, ofUsers, err
		}
		ofUsers[n] = u.Stamp
	}
	return ofClients, ofUsers, nil
}
