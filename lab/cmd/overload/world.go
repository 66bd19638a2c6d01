package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/app/repositories"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/bolt"
	"oauth-server/lab/servers"
)

const (
	clients     = 16 // of each kind
	users       = 32
	greedy      = "greedy"
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

// configuration returns the configuration of the server. No client of the mix gets near its limit, nor do failed attempts.
func configuration(control string) string {
	return fmt.Sprintf(`log: { level: error }
tokens: { code_ttl: %s, refresh_grace: 10m } # callers who hung up come again with the token that they have
passwords: { sign_ins_per_minute: 1000000 }
failed_attempts:
  clients: { per_address: 1000000000, per_name: 1000000000 }
  users: { per_address: 1000000000, per_name: 1000000000, per_name_daily: 1000000000, slow_after: 1000000000 }
rate_limit:
  default:
    client: [ { name: ample, requests: 1000000, window: 10s } ]
    user: [ { name: ample, requests: 1000000, window: 10s } ]
  clients: { %s: { client: [ { name: tight, requests: 200, window: 10s } ] } }
overload: { mode: %q }
`, codeTTL, greedy, control)
}

// world is the server and those who ask it.
type world struct {
	dir              string // in memory, so that no disk is measured
	serverCore, core int    // core is for the generator
	store            *servers.Store
	server           *servers.Server

	codes    []grant  // not redeemed yet
	families []*grant // of refresh tokens
}

// grant is a code, or a refresh token in its place, and who redeems it.
type grant struct {
	client string
	secret string // the code or the refresh token
}

// newWorld builds the server and registers clients and users.
func newWorld(ctx context.Context, s settings) (w *world, err error) {
	w = &world{}
	w.serverCore, w.core = s.cores()
	if w.dir, err = os.MkdirTemp("/dev/shm", "overload-*"); err != nil {
		return nil, err
	}
	if err := w.register(ctx); err != nil {
		return nil, w.end(err)
	}
	return w, nil
}

func (w *world) register(ctx context.Context) error {
	binary, err := servers.BuildServer(ctx, w.dir)
	if err != nil {
		return err
	}
	w.store = servers.InFile(binary, w.dir, "store")
	store, err := app.OpenStore(ctx, config.Store{Embedded: &config.Embedded{Path: w.store.File}})
	if err != nil {
		return err
	}
	var errs []error
	now := time.Now()
	create := func(c clientcfg.Client) {
		c.Scopes = []string{"read", "write"}
		_, secret, err := app.CreateClient(ctx, store, c, now)
		w.store.Secrets[c.ID] = secret
		errs = append(errs, err)
	}
	create(clientcfg.Client{ID: greedy, Grants: []clientcfg.Grant{clientcfg.ClientCredentials}})
	for n := range clients {
		create(clientcfg.Client{ID: shop(n), Grants: []clientcfg.Grant{clientcfg.ClientCredentials, clientcfg.Password}})
		create(clientcfg.Client{
			ID: web(n), Grants: []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken}, RedirectURIs: []string{redirectURI},
			FirstParty: true, WithoutPKCE: true,
		})
	}
	for n := range users {
		_, err := app.CreateUser(ctx, store, user(n), password, clientcfg.NoAccess, now)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, store.Close())...)
}

// end stops the server, removes the files, and returns err with what fails.
func (w *world) end(err error) error { return errors.Join(err, w.stop(), os.RemoveAll(w.dir)) }

func (w *world) stop() error {
	if w.server == nil {
		return nil
	}
	defer func() { w.server = nil }()
	return w.server.Stop()
}

// serve starts the server with that many codes in its store, and that many refresh tokens given out.
func (w *world) serve(ctx context.Context, control string, codes, families int) error {
	if err := w.stop(); err != nil {
		return err
	}
	if err := w.makeCodes(ctx, codes+families+spare); err != nil {
		return fmt.Errorf("make codes: %w", err)
	}
	var err error
	if w.server, err = w.store.Serve(ctx, w.serverCore, configuration(control)); err != nil {
		return err
	}
	w.families = nil
	return w.redeem(ctx, families)
}

// makeCodes puts codes into the store while no server has it.
func (w *world) makeCodes(ctx context.Context, n int) (err error) {
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
				errs[first] = grants.NewRepository(store).CreateGrant(ctx, grants.Grant{
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

func (w *world) takeCode() grant {
	g := w.codes[0]
	w.codes = w.codes[1:]
	return g
}

func (w *world) codeRequest(g grant) []byte {
	return w.request(g.client, url.Values{"grant_type": {"authorization_code"}, "code": {g.secret}, "redirect_uri": {redirectURI}})
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
