package e2e

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// patientGrace is a grace period that a slow machine does not exceed.
const patientGrace = "tokens: { refresh_grace: 5m }\n"

// together is how many refreshes of one token are sent at once.
const together = 16

// refreshed is the answer to a refresh.
type refreshed struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// allRefresh sends the refresh of one token 16 times at once, through ask, and returns the one
// successor that all got.
func allRefresh(t *testing.T, token string, ask func(i int, token string) reply) (next string) {
	t.Helper()
	answers := make([]reply, together)
	var wg sync.WaitGroup
	for i := range together {
		wg.Go(func() { answers[i] = ask(i, token) })
	}
	wg.Wait()
	access, refresh := map[string]bool{}, map[string]bool{}
	for _, r := range answers {
		r.requireStatus(t, http.StatusOK)
		got := r.tokens(t)
		access[got.Access], refresh[got.Refresh] = true, true
		next = got.Refresh
	}
	check.Equal(t, "access tokens", len(access), together)
	check.Equal(t, "refresh tokens", len(refresh), 1)
	check.Equal(t, "length of the refresh token", len(next), 72)
	return next
}

func refreshForm(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
}

// TestLostAnswer: a refresh that is repeated gets the same successor, until that is used. Then a
// replay revokes the family.
func TestLostAnswer(t *testing.T) {
	s := start(t, unlimited+patientGrace)
	ask := func(_ int, token string) reply { return s.post("/token", "web", refreshForm(token)) }
	first := s.signIn(with(t), s.config("web")).RefreshToken
	token := first
	for range 5 {
		token = allRefresh(t, token, ask)
	}
	s.kill() // the key that successors are derived with is kept
	s.up()
	second := ask(0, token).tokens(t).Refresh
	check.Equal(t, "successor", ask(0, token).tokens(t).Refresh, second)
	s.kill()
	s.up()
	check.Equal(t, "successor after a restart", allRefresh(t, token, ask), second)

	requireOAuthError(t, ask(0, first), 400, "invalid_grant")
	requireOAuthError(t, ask(0, second), 400, "invalid_grant")
}

func TestNoGrace(t *testing.T) {
	s := start(t, unlimited+"tokens: { refresh_grace: 0s }\n")
	first := s.signIn(with(t), s.config("web")).RefreshToken
	s.post("/token", "web", refreshForm(first)).requireStatus(t, http.StatusOK)
	requireOAuthError(t, s.post("/token", "web", refreshForm(first)), 400, "invalid_grant")
}

// TestSpentTokenReplayed: a spent refresh token that is presented 300 times gives one line in the log.
func TestSpentTokenReplayed(t *testing.T) {
	s := start(t, unlimited)
	first := s.signIn(with(t), s.config("web")).RefreshToken
	token := first
	for range 2 {
		token = s.post("/token", "web", refreshForm(token)).tokens(t).Refresh
	}
	began := time.Now()
	for range 300 {
		requireOAuthError(t, s.post("/token", "web", refreshForm(first)), 400, "invalid_grant")
	}
	if lines, most := strings.Count(s.logs.String(), "grant presented twice"), 1+int(time.Since(began)/(59*time.Second)); lines < 1 || lines > most {
		t.Errorf("%d lines, want 1 to %d", lines, most)
	}
}

// TestRandomRefreshTokens of a public client, whose client_id everyone knows, meet a limit.
func TestRandomRefreshTokens(t *testing.T) {
	s := start(t, unlimited+"failed_attempts: { window: 24h, grants: { per_address: 8, per_name: 5 } }\n") // over the end of a window one more passes
	form := refreshForm("random")
	form.Set("client_id", "native")
	for range 5 {
		requireOAuthError(t, s.post("/token", "", form), 400, "invalid_grant")
	}
	r := s.post("/token", "", form)
	requireOAuthError(t, r, http.StatusTooManyRequests, "temporarily_unavailable")
	check.Equal(t, "has Retry-After", r.header.Get("Retry-After") != "", true)
	s.signIn(with(t), s.config("web")) // a client with a secret does not suffer from it
}

// TestCodeOutlivesItsClient: a client is deleted and created again before its code is redeemed.
//
// Attack (tokens): A code outlives its client. Codes from before a re-registration are refused.
// Scopes that the client has lost are left out. Also grants.TestCodeScopesOfTheClient.
func TestCodeOutlivesItsClient(t *testing.T) {
	s := start(t, unlimited)
	code, verifier := s.code(newBrowser(t), s.config("native"))
	check.Equal(t, "status", s.stop(), 0)
	store := []string{"--data", s.data()}
	for _, args := range [][]string{{"client", "delete", "native"}, append([]string{"client", "create", "native"}, clientArgs["native"]...)} {
		_, err := command(t.Context(), "", append(args, store...)...)
		check.OK(t, err)
	}
	s.up()
	requireOAuthError(t, s.post("/token", "", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"native"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {loopbackURI},
	}), 400, "invalid_grant")
}

// TestRefreshEndsByAge: from the sign-in on, not from the last refresh.
func TestRefreshEndsByAge(t *testing.T) {
	s := start(t, unlimited+"tokens: { refresh_max_age: 3s, refresh_grace: 0s }\n")
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
	token := s.post("/token", "legacy", form).tokens(t).Refresh
	var last reply
	check.Eventually(t, "the refresh is refused", func() bool {
		last = s.post("/token", "legacy", refreshForm(token))
		token = last.tokens(t).Refresh
		return last.status != http.StatusOK
	})
	requireOAuthError(t, last, 400, "invalid_grant")
	check.Equal(t, "the answer speaks of expiry", strings.Contains(last.body, "expired"), true)
}

// TestRefreshThroughFaults: 16 requests at once refresh one token at two instances, whose database
// loses requests and replies. Requests that fail are repeated, like those of a client whose answer was
// lost. All get the same successor, in every generation, and none of them is taken for a thief.
func TestRefreshThroughFaults(t *testing.T) {
	const generations = 8
	c := newCluster(t, unlimited+patientGrace)
	c.register("mail", "--grant", "password", "--grant", "refresh_token")
	c.addUser()
	c.grow(2)

	post := func(i int, form url.Values) reply { return c.send(c.members[i%2], "/token", "mail", form) }
	r := post(0, url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}})
	r.requireStatus(t, http.StatusOK)
	first := r.tokens(t)

	var lost atomic.Int64
	for i, m := range c.members {
		m.proxy.Decide(losing(uint64(i), &lost))
	}
	var repeated atomic.Int64
	ask := func(i int, token string) reply {
		for {
			r := post(i, refreshForm(token))
			if r.status != http.StatusServiceUnavailable {
				return r
			}
			repeated.Add(1)
			i++ // at the other instance
		}
	}
	token := first.Refresh
	for range generations {
		token = allRefresh(t, token, ask)
	}
	for _, m := range c.members {
		m.proxy.Decide(nil)
	}
	t.Logf("%d commands or replies were lost, %d requests repeated", lost.Load(), repeated.Load())
	if lost.Load() == 0 {
		t.Error("nothing was lost")
	}
	requireOAuthError(t, post(0, refreshForm(first.Refresh)), 400, "invalid_grant")
	requireOAuthError(t, post(1, refreshForm(token)), 400, "invalid_grant")
}

// losing loses half of the inserts and updates, which claim and rotate, before or after they are
// executed, and a few of the reads: after each loss the driver pauses.
func losing(seed uint64, lost *atomic.Int64) func(command string) mongotest.Fault {
	r := rand.New(rand.NewPCG(seed, 7))
	faults := []mongotest.Fault{mongotest.LoseRequest, mongotest.LoseReply}
	of := map[string]int{"insert": 4, "update": 4, "find": 80}
	return func(command string) mongotest.Fault {
		n := of[command]
		if n == 0 {
			return mongotest.Pass
		}
		i := r.IntN(n)
		if i >= len(faults) {
			return mongotest.Pass
		}
		lost.Add(1)
		return faults[i]
	}
}
