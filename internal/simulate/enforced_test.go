package simulate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/secret"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/traffic"
)

// everyRule returns settings that use all features of the limiter.
func everyRule() ratelimit.Settings {
	second, three := ratelimit.Duration(2*time.Second), 3
	strict := ratelimit.NewLimit("per-10s", 4, 10*time.Second)
	strict.MakeStrict()
	refreshes := ratelimit.NewLimit("refreshes", 4, 30*time.Second)
	refreshes.Grants = ratelimit.GrantRefresh
	s := ratelimit.DefaultSettings()
	s.Clients = map[string]ratelimit.Policy{
		"reuser": {Client: perMinute(5), OverLimit: ratelimit.OverLimitReuse},
		"hammer": {Client: perMinute(6), Ban: &ratelimit.Ban{Denials: 10, Within: time.Minute, For: time.Minute, Factor: 2, Max: time.Hour, Forget: time.Hour}},
		"waiter": {Client: []ratelimit.Limit{fast(4)}, MaxWait: &second, MaxWaiting: &three},
		"both": {
			Client: []ratelimit.Limit{fast(4)}, MaxWait: &second, MaxWaiting: &three,
			Ban: &ratelimit.Ban{Denials: 3, Within: time.Minute, For: 5 * time.Second, Factor: 1, Max: time.Hour, Forget: time.Hour},
		},
		"strict": {Client: []ratelimit.Limit{strict}},
		"shop":   {User: []ratelimit.Limit{ratelimit.NewLimit("users", 6, time.Minute), refreshes}, Total: shared("total", 20), Source: shared("source", 12)},
		"login":  {User: perMinute(4), Ban: &ratelimit.Ban{Denials: 2, Within: time.Minute, For: time.Minute, Factor: 2, Max: time.Hour, Forget: time.Hour}},
	}
	return s
}

var shopUsers = []string{"u0", "u1", "u2", "u3", "u4"}

// mixedTraffic returns two hours of requests for these settings, in bursts and trickles.
func mixedTraffic() (all []traffic.Request) {
	random := rand.New(rand.NewPCG(7, 11))
	began := time.Date(2000, 1, 1, 0, 40, 0, 0, time.UTC) // no token issued before counts as wasted
	add := func(n int, gap time.Duration, make func(i int) traffic.Request) {
		at := began
		for i := range n {
			at = at.Add(time.Duration(random.ExpFloat64() * float64(gap)))
			if random.IntN(30) == 0 {
				at = at.Add(20 * gap)
			}
			r := make(i)
			r.At = at
			all = append(all, r)
		}
	}
	for _, of := range []struct {
		id  string
		gap time.Duration
	}{{"reuser", 8 * time.Second}, {"hammer", 4 * time.Second}, {"waiter", 2 * time.Second}, {"both", time.Second}, {"strict", 2 * time.Second}} {
		add(600, of.gap, func(i int) traffic.Request {
			r := credentials(of.id)
			if of.id == "reuser" && i%3 == 0 {
				r.Scope = []string{"read write", "write read"}[i%2] // the same set
			}
			return r
		})
	}
	add(900, 2*time.Second, func(int) traffic.Request {
		r := refresh("shop", shopUsers[random.IntN(len(shopUsers))])
		r.Source = netip.AddrFrom4([4]byte{192, 0, 2, byte(random.IntN(2))})
		return r
	})
	add(40, 8*time.Second, func(int) traffic.Request { return traffic.Request{Client: "login", User: "alice", Grant: "password"} })
	slices.SortStableFunc(all, func(a, b traffic.Request) int { return a.At.Compare(b.At) })
	for i := range all { // no two at the same time: their order would be undefined
		if i > 0 && !all[i].At.After(all[i-1].At) {
			all[i].At = all[i-1].At.Add(time.Nanosecond)
		}
	}
	return all
}

// server is the grants of a server with all parts that decide, in the time of a bubble.
type server struct {
	t       *testing.T
	service *grants.Service
	tokens  map[string]string // refresh tokens, by user
	mu      sync.Mutex
	seen    map[string]map[ratelimit.Outcome]int // by client
	wasted  map[string]uint64
}

func newServer(t *testing.T, settings ratelimit.Settings) *server {
	t.Helper()
	clients := testworld.Clients{}
	for _, id := range []string{"reuser", "hammer", "waiter", "both", "strict", "shop", "login"} {
		clients[id] = &clientcfg.Client{
			ID: id, Grants: clientcfg.Grants(), SecretDigest: secret.DigestOf("secret"), Stamp: secret.NewStamp(),
			RedirectURIs: []string{"https://shop.example.com/callback"}, Scopes: []string{"read", "write", "list"},
		}
	}
	clients.MustBeValid(t)
	store := testworld.OpenStore(t, filepath.Join(t.TempDir(), "test.db"))
	testworld.AddUsers(t, store.Users, time.Now().Add(-time.Hour))
	alice, err := store.User(t.Context(), "alice")
	check.OK(t, err)
	for _, name := range shopUsers {
		user := alice
		user.Name, user.Stamp = name, secret.NewStamp()
		check.OK(t, store.CreateUser(t.Context(), user, clientcfg.Event{}))
	}
	ring, err := keys.Open(t.Context(), store, keys.Options{Issuer: "https://auth.example.com"})
	check.OK(t, err)
	s := &server{t: t, tokens: map[string]string{}, seen: map[string]map[ratelimit.Outcome]int{}, wasted: map[string]uint64{}}
	opts := grants.Options{Issuer: "https://auth.example.com", Clients: clients, Store: grants.NewRepository(store), Users: store.Users, Stored: store, Signer: ring, Deriver: testworld.Deriver{}}
	opts.SignIn.Passwords = testworld.Passwords(secret.PasswordOptions{})
	s.service, err = grants.New(opts)
	check.OK(t, err)
	for _, name := range shopUsers {
		answer, err := s.ask(&traffic.Request{Client: "shop", User: name, Grant: "password"})
		check.OK(t, err)
		s.tokens[name] = answer.RefreshToken
	}
	policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
	opts.Counters, opts.Policies = counting.NewCounters(1000), func() *clientcfg.PolicySnapshot { return policies }
	opts.Bans, err = bans.New(t.Context(), bans.Options{Store: bans.NewRepository(store), Counters: opts.Counters})
	check.OK(t, err)
	opts.Observe, opts.Issued = s.observe, s.issued
	opts.SignIn.Passwords = testworld.Passwords(secret.PasswordOptions{})
	s.service, err = grants.New(opts)
	check.OK(t, err)
	return s
}

func (s *server) observe(_ context.Context, d limiter.Decided) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[d.ClientID] == nil {
		s.seen[d.ClientID] = map[ratelimit.Outcome]int{}
	}
	s.seen[d.ClientID][d.Decision.Outcome]++
}

func (s *server) issued(i grants.Issued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.Wasted {
		s.wasted[i.ClientID]++
	}
}

func (s *server) ask(r *traffic.Request) (grants.TokenResponse, error) {
	req := grants.TokenRequest{
		Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: r.Client, Secret: "secret"},
		GrantType:   r.Grant, Scope: r.Scope, Remote: r.Source,
	}
	switch r.Grant {
	case "refresh_token":
		req.RefreshToken = s.tokens[r.User]
	case "password":
		req.Username, req.Password = r.User, testworld.Password
	}
	return s.service.Token(s.t.Context(), req)
}

// serve sends the requests at their times.
func (s *server) serve(all []traffic.Request) {
	for i := range all {
		r := &all[i]
		<-time.After(time.Until(r.At))
		check.OK(s.t, s.service.SweepLastTokens(s.t.Context())) // as the server does every second
		if r.Client == "waiter" || r.Client == "both" {
			go func() { _, _ = s.ask(r) }() // the outcome is observed
			synctest.Wait()
			continue
		}
		if answer, err := s.ask(r); err == nil && answer.RefreshToken != "" {
			s.tokens[r.User] = answer.RefreshToken
		}
	}
	<-time.After(time.Minute)
}

// outcomes returns counts by client as a replay reports them. The would-be outcomes of dry-run
// count as real ones.
func (s *server) outcomes() map[string]simulate.Counts {
	all := map[string]simulate.Counts{}
	for id, seen := range s.seen {
		var n simulate.Counts
		for outcome, times := range seen {
			count := uint64(times)
			n.Requests += count
			switch outcome {
			case ratelimit.Denied, ratelimit.WouldDeny:
				n.Denied += count
			case ratelimit.Reused, ratelimit.WouldReuse:
				n.Reused += count
			case ratelimit.Delayed, ratelimit.WouldDelay:
				n.Delayed += count
			case ratelimit.Banned, ratelimit.WouldBan:
				n.Banned += count
			default:
				n.Admitted += count
			}
		}
		all[id] = n
	}
	return all
}

// TestPredictionIsEnforcement: a replay of the requests of a dry-run predicts, for each client and
// to the last request, the result of enforcing the same policies on the same requests.
func TestPredictionIsEnforcement(t *testing.T) {
	t.Parallel()
	all, settings := mixedTraffic(), everyRule()
	settings.Mode = ratelimit.DryRun
	predicted, waste := map[string]simulate.Counts{}, map[string]uint64{}
	for _, c := range run(t, &script{all: all}, simulate.Options{Policies: simulate.Policies{Settings: settings}.Enforced()}).Clients {
		waste[c.ClientID] = c.Wasted
		c.Wasted = 0
		predicted[c.ClientID] = c.Counts
	}
	for _, mode := range []ratelimit.Mode{ratelimit.DryRun, ratelimit.Enforce} {
		synctest.Test(t, func(t *testing.T) {
			settings.Mode = mode
			s := newServer(t, settings)
			s.serve(all)
			got := s.outcomes()
			if mode == ratelimit.DryRun { // dry-run queues no requests, so no user is banned while waiting
				got["both"] = predicted["both"]
			}
			check.Equal(t, fmt.Sprintf("%s: outcomes", mode), got, predicted)
			if mode == ratelimit.Enforce {
				check.Equal(t, "wasted", s.wasted, waste)
			}
		})
	}
	for id, n := range predicted { // makes sure that the test covers every outcome
		if id != "strict" && n.Admitted == 0 || n.Denied == 0 && id != "reuser" {
			t.Errorf("nothing happens to %s: %+v", id, n)
		}
	}
	if predicted["reuser"].Reused == 0 || predicted["hammer"].Banned == 0 || predicted["waiter"].Delayed == 0 || predicted["login"].Banned > 0 ||
		predicted["both"].Delayed == 0 || predicted["both"].Banned == 0 {
		t.Errorf("not every outcome is there: %+v", predicted)
	}
}
