package e2e

import (
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
)

// crowded is a server that works on ten requests at once, and the address of its operators. Seven of these can be of
// the least critical, eight client_credentials, nine critical.
func crowded(t *testing.T, mode string) (s *server, admin string) {
	t.Helper()
	admin = testworld.FreeAddress(t)
	s = start(t, "admin_listen: "+admin+`
overload: { mode: `+strconv.Quote(mode)+`, target: 1s, max_in_flight: 10 }
rate_limit:
  default:
    client: [ { name: few, requests: 8, window: 9s, frames: 60 }, { name: many, requests: 1000, window: 60s } ]
    max_wait: 10s
`)
	return s, admin
}

// fill has eight requests wait for their turn, so that they are in flight. It returns when all of them are.
func (s *server) fill(admin string) <-chan error {
	s.tb.Helper()
	first := s.asked(8) // which is the limit
	for range 8 {
		check.OK(s.tb, <-first)
	}
	answers := s.asked(8)
	check.Eventually(s.tb, "all wait", func() bool {
		return strings.Contains(metricsOf(s.tb, admin), "\noauth_overload_in_flight 8\n")
	})
	return answers
}

// drain waits for the answers, whatever they are.
func drain(answers <-chan error) {
	for range cap(answers) {
		if err := <-answers; err != nil {
			continue // turned away by the server that stops
		}
	}
}

func metricsOf(tb testing.TB, admin string) string {
	tb.Helper()
	return get(tb, "http://"+admin+"/metrics").body
}

var forClient = url.Values{"grant_type": {"client_credentials"}}

// TestCrowdedServer refuses the least critical requests with the time to try again, and works on the others.
func TestCrowdedServer(t *testing.T) {
	s, admin := crowded(t, "enforce")
	token := s.signIn(with(t), s.config("web")).RefreshToken
	waiting := s.fill(admin)

	refused := s.post("/token", "shop", forClient)
	requireOAuthError(t, refused, http.StatusServiceUnavailable, "temporarily_unavailable")
	check.Equal(t, "type", refused.object(t)["type"], any("https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"))
	after, err := strconv.Atoi(refused.header.Get("Retry-After"))
	check.OK(t, err)
	if after < 1 || after > 30 {
		t.Errorf("Retry-After: %d", after)
	}
	requireOAuthError(t, s.post("/introspect", "shop", url.Values{"token": {"x"}}), http.StatusServiceUnavailable, "temporarily_unavailable")
	page := s.get(strings.TrimPrefix(s.config("web").AuthCodeURL("x", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())), s.Issuer))
	page.requireStatus(t, http.StatusServiceUnavailable)
	if !strings.Contains(page.body, "<html") || page.header.Get("Retry-After") == "" {
		t.Errorf("a person sees %v %s", page.header, page.body)
	}

	s.post("/token", "web", refreshForm(token)).requireStatus(t, http.StatusOK)
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/jwks.json", "/healthz", "/readyz"} {
		s.get(path).requireStatus(t, http.StatusOK)
	}
	for _, line := range []string{
		`oauth_overload_requests_total{class="client_credentials",outcome="shed"} 1`,
		`oauth_overload_requests_total{class="introspection",outcome="shed"} 1`,
		`oauth_overload_requests_total{class="page",outcome="shed"} 1`,
		`oauth_overload_requests_total{class="refresh_token",outcome="admitted"} 1`,
	} {
		if !strings.Contains(metricsOf(t, admin), line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	check.Equal(t, "exit status", s.stop(), 0)
	drain(waiting)
}

// TestCrowdedServerInDryRun refuses nothing and counts what it would have refused; off does not count either. Both
// are changed while the server runs.
func TestCrowdedServerInDryRun(t *testing.T) {
	s, admin := crowded(t, "dry_run")
	waiting := s.fill(admin)
	const would = `oauth_overload_requests_total{class="introspection",outcome="would_shed"} `
	ask := func() { s.post("/introspect", "shop", url.Values{"token": {"x"}}).requireStatus(t, http.StatusOK) }
	ask()
	if !strings.Contains(metricsOf(t, admin), would+"1\n") {
		t.Error("the metrics do not have what would have been refused")
	}
	text, err := os.ReadFile(s.file)
	check.OK(t, err)
	s.configure(strings.Replace(string(text), "dry_run", "off", 1))
	check.Eventually(t, "the mode of the file", func() bool {
		return strings.Contains(metricsOf(t, admin), `oauth_overload_mode{mode="off"} 1`)
	})
	ask()
	if !strings.Contains(metricsOf(t, admin), would+"1\n") {
		t.Error("what would have been refused is counted in the mode off")
	}
	check.Equal(t, "exit status", s.stop(), 0)
	drain(waiting)
}

// asked sends n requests of a client at once, with golang.org/x/oauth2.
func (s *server) asked(n int) <-chan error {
	answers, c, ctx := make(chan error, n), s.credentials("shop"), with(s.tb)
	c.AuthStyle = oauth2.AuthStyleInHeader
	for range n {
		go func() {
			_, err := c.Token(ctx)
			answers <- err
		}()
	}
	return answers
}

// Fifteen requests at once, with a limit of five in half a second: all get a token, ten of them at their turn.
func TestAllGetTheirTurn(t *testing.T) {
	s := start(t, `rate_limit:
  default:
    client:
      - { name: fast, requests: 5, window: 500ms, frames: 5 }
      - { name: slow, requests: 1000, window: 60s }
    max_wait: 5s
`)
	answers := s.asked(15)
	for range 15 {
		check.OK(t, <-answers)
	}
	check.Eventually(t, "the log of ten that waited", func() bool {
		return strings.Count(s.logs.String(), "outcome=delayed limit=fast") == 10
	})
}

// At SIGTERM, those who wait get a 429 at once.
func TestNobodyWaitsForAServerThatStops(t *testing.T) {
	admin := testworld.FreeAddress(t)
	s := start(t, "admin_listen: "+admin+`
rate_limit:
  default:
    client: [ { name: few, requests: 1, window: 10s, frames: 50 } ]
    max_wait: 10s
`)
	check.OK(t, <-s.asked(1))
	answers := s.asked(3)
	check.Eventually(t, "three wait", func() bool {
		return strings.Contains(metricsOf(t, admin), "\noauth_ratelimit_waiting 1\n")
	})
	check.Equal(t, "exit status", s.stop(), 0)
	for range 3 {
		requireRefused(t, <-answers, http.StatusTooManyRequests, "temporarily_unavailable")
	}
}
