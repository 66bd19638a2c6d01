package gateway_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/ratelimit"
)

// slowly makes the upstream take until the end of the test, or until end is called, to refuse
// requests without the right secret or password. It issues tokens to others.
func (w *world) slowly() (arrived <-chan struct{}, end func()) {
	under, over := make(chan struct{}), make(chan struct{})
	end = sync.OnceFunc(func() { close(over) })
	w.t.Cleanup(end)
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		body := w.came[len(w.came)-1]
		w.mu.Unlock()
		if strings.Contains(body, "right") {
			issues("ada", "")(rw, r)
			return
		}
		under <- struct{}{}
		<-over
		fails(rw, r)
	})
	return under, end
}

// of sends a token request from an address.
func (w *world) of(addr, form string) int {
	return w.send(http.MethodPost, tokenPath+"/"+addr, form).status
}

// addressed takes the client address from the last segment of the path.
func addressed(o *gateway.Options) {
	o.TokenPaths = []string{tokenPath + "/*"}
	o.ClientAddr = func(r *http.Request) (netip.Addr, bool) {
		return netip.MustParseAddr(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]), false
	}
}

// TestStrangersLockOutNobody checks that a caller without a secret can have any number of requests
// in progress without affecting others.
func TestStrangersLockOutNobody(t *testing.T) {
	const limit, strangers = 3, 12
	const secret = "grant_type=client_credentials&client_id=shop&client_secret="
	const password = "grant_type=password&client_id=app&username=ada&password="
	for name, tt := range map[string]struct{ addr, stranger, right string }{
		"a secret, from the same address": {"192.0.2.1", secret + "guess%d", secret + "right"},
		"a secret, from others":           {"198.51.100.%d", secret + "guess", secret + "right"},
		"a password, from the same":       {"192.0.2.1", password + "guess%d", password + "right"},
		"a password, from others":         {"198.51.100.%d", password + "guess", password + "right"},
		"no secret, one IPv6 site":        {"2001:db8:0:%d::1", "grant_type=client_credentials&client_id=shop", "grant_type=client_credentials&client_id=shop&scope=right"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, limit, addressed)
			w.upstream(fails)
			w.of("203.0.113.1", strings.ReplaceAll(tt.stranger, "%d", "")) // so the upstream checks secrets
			arrived, end := w.slowly()
			var all sync.WaitGroup
			under := 0
			for i := range strangers {
				addr, form := tt.addr, tt.stranger
				if strings.Contains(addr, "%d") {
					addr = fmt.Sprintf(addr, i)
				}
				if strings.Contains(form, "%d") {
					form = fmt.Sprintf(form, i)
				}
				answered := make(chan struct{})
				all.Go(func() {
					defer close(answered)
					w.of(addr, form)
				})
				select {
				case <-arrived:
					under++
				case <-answered: // their own requests use up their room
				}
			}
			check.Equal(t, "strangers are under way", under >= limit, true)
			for i, want := range []int{200, 200, 200, 429} {
				check.Equal(t, fmt.Sprint("request ", i), w.of("192.0.2.1", tt.right), want)
			}
			end()
			all.Wait()
		})
	}
}

// TestOneSecretGetsNoMoreAtOnce checks that one secret gets no more concurrent tokens, even for the
// first requests with it.
func TestOneSecretGetsNoMoreAtOnce(t *testing.T) {
	const limit = 5
	for name, form := range map[string]string{
		"a client":  "client_id=shop&client_secret=s%s&grant_type=client_credentials",
		"no secret": "client_id=shop&grant_type=client_credentials",
		"a user":    "client_id=shop&grant_type=password&username=ada&password=p%s",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, limit)
			w.upstream(issues("ada", ""))
			var all sync.WaitGroup
			var mu sync.Mutex
			issued := 0
			for i := range 8 {
				all.Go(func() {
					for range 10 {
						sent := form
						if strings.Contains(sent, "%s") {
							sent = fmt.Sprintf(sent, []string{"", "+", "%20"}[i%3]) // spellings of one secret
						}
						if w.send(http.MethodPost, tokenPath, sent).status == 200 {
							mu.Lock()
							issued++
							mu.Unlock()
						}
					}
				})
			}
			all.Wait()
			check.Equal(t, "issued", issued, limit)
		})
	}
}

// refuses returns an upstream handler with this answer.
func refuses(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestGuesses checks which answers of the upstream count as guesses of a secret, so that after five
// in a row a third concurrent request is denied. The log, the metrics and the answer show that.
func TestGuesses(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		guess  bool
	}{
		"invalid_client":                  {refuses(400, `{"error":"invalid_client"}`), true},
		"invalid_client with 401":         {fails, true},
		"unauthorized_client of Keycloak": {refuses(401, `{"error":"unauthorized_client"}`), true},
		"access_denied of Auth0":          {refuses(401, `{"error":"access_denied","error_description":"Unauthorized"}`), true},
		"an error with 200 of GitHub":     {refuses(200, `{"error":"incorrect_client_credentials"}`), true},
		"no JSON":                         {refuses(400, `no`), true},
		"no body":                         {refuses(401, ``), true},
		"invalid_grant":                   {refuses(400, `{"error":"invalid_grant"}`), false},
		"a wrong password, of Keycloak":   {refuses(401, `{"error":"invalid_grant","error_description":"Invalid user credentials"}`), false},
		"authorization_pending":           {refuses(400, `{"error":"authorization_pending"}`), false},
		"authorization_pending of GitHub": {refuses(200, `{"error":"authorization_pending"}`), false},
		"slow_down":                       {refuses(400, `{"error":"slow_down"}`), false},
		"expired_token":                   {refuses(400, `{"error":"expired_token"}`), false},
		"use_dpop_nonce":                  {refuses(400, `{"error":"use_dpop_nonce"}`), false},
		"access_denied":                   {refuses(400, `{"error":"access_denied"}`), false},
		"interaction_required":            {refuses(400, `{"error":"interaction_required"}`), false},
		"consent_required":                {refuses(400, `{"error":"consent_required"}`), false},
		"invalid_scope":                   {refuses(400, `{"error":"invalid_scope"}`), false},
		"invalid_target":                  {refuses(400, `{"error":"invalid_target"}`), false},
		"unsupported_grant_type":          {refuses(400, `{"error":"unsupported_grant_type"}`), false},
		"a limit of the upstream":         {refuses(429, `slowly`), false},
		"a failure of the upstream":       {refuses(503, `{"error":"server_error"}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			w := newWorld(t, 100, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			w.upstream(tt.answer)
			for range 6 {
				w.token("grant_type=client_credentials")
			}
			arrived, end := w.slowly()
			done := make(chan int)
			for range 2 {
				go func() { done <- w.token("grant_type=client_credentials").status }()
				<-arrived
			}
			go func() { // it arrives only if it is not denied
				select {
				case <-arrived:
				case <-t.Context().Done():
				}
			}()
			third := make(chan answer, 1)
			go func() { third <- w.token("grant_type=client_credentials") }()
			check.Eventually(t, "it is decided", func() bool { return w.Stats().UnderWay == 3 || len(third) == 1 })
			end()
			got := <-third
			<-done
			<-done
			check.Equal(t, "denied", got.status == http.StatusTooManyRequests, tt.guess)
			if tt.guess {
				check.Equal(t, "Retry-After", got.header.Get("Retry-After"), "1")
				check.Equal(t, "body", strings.Contains(got.body, "with unverified credentials"), true)
			}
			crowded := map[bool]uint64{true: 1}[tt.guess]
			check.Equal(t, "crowded, denied", []uint64{w.Stats().Requests[gateway.Crowded], w.Stats().Requests[gateway.Denied]}, []uint64{crowded, 0})
			check.Equal(t, "in the log", strings.Count(log.String(), "limit=under_way"), int(crowded))
		})
	}
}

// TestWhoMayGuess checks that these bounds apply only to clients with enforced limits and secrets
// that have got no token.
func TestWhoMayGuess(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(*ratelimit.Settings)
		prove bool
	}{
		"dry-run": {edit: func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun }},
		"off":     {edit: func(s *ratelimit.Settings) { s.Mode = ratelimit.Off }},
		"trusted": {edit: func(s *ratelimit.Settings) { s.Clients = map[string]ratelimit.Policy{"shop": {Trusted: true}} }},
		"proven":  {edit: func(*ratelimit.Settings) {}, prove: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 100, under(t, tt.edit))
			w.upstream(fails)
			for i := range 6 {
				w.send(http.MethodPost, tokenPath, fmt.Sprint("grant_type=client_credentials&client_id=shop&client_secret=guess", i))
			}
			if tt.prove {
				w.upstream(issues("shop", ""))
				w.wantStatus("a right secret", "grant_type=client_credentials", 200)
				w.upstream(fails)
				for i := range 6 {
					w.send(http.MethodPost, tokenPath, fmt.Sprint("grant_type=client_credentials&client_id=shop&client_secret=guess", i))
				}
			}
			var all, came sync.WaitGroup
			came.Add(5)
			w.upstream(func(rw http.ResponseWriter, r *http.Request) {
				came.Done()
				came.Wait()
				issues("shop", "")(rw, r)
			})
			var got [5]int
			for i := range got {
				all.Go(func() {
					if got[i] = w.token("grant_type=client_credentials").status; got[i] == http.StatusTooManyRequests {
						came.Done() // it never arrives
					}
				})
			}
			all.Wait()
			check.Equal(t, "five at once", got, [5]int{200, 200, 200, 200, 200})
		})
	}
}
