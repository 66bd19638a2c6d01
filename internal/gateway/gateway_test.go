package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/gateway"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// world is a gateway in front of an upstream that answers as the test says.
type world struct {
	t            *testing.T
	url          string
	upstreamHost string
	*gateway.Gateway

	mu     sync.Mutex
	answer http.HandlerFunc // of the upstream
	came   []string         // requests at the upstream: method, URL, body
}

// upstream sets the handler of the upstream.
func (w *world) upstream(answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// noon is the time of all counts.
var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

const tokenPath = "/realms/x/protocol/openid-connect/token"

// newWorld admits limit requests a minute for each user and each client.
func newWorld(t *testing.T, limit int64, edits ...func(*gateway.Options)) *world {
	t.Helper()
	w := &world{t: t}
	up := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		check.OK(t, err)
		w.mu.Lock()
		w.came = append(w.came, r.Method+" "+r.URL.String()+" "+string(body))
		answer := w.answer
		w.mu.Unlock()
		answer(rw, r)
	}))
	t.Cleanup(up.Close)
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("user", limit, time.Minute)}
	settings.Default.Client = settings.Default.User
	policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
	target, err := url.Parse(up.URL)
	check.OK(t, err)
	o := gateway.Options{
		Upstream: target, TokenPaths: []string{"/realms/*/protocol/openid-connect/token"},
		Limiter: limiter.New(limiter.Options{
			Counters: counting.NewCounters(0), Clock: func() time.Time { return noon },
			Policies: func() limiter.Policies { return policies },
		}),
		ClientAddr: func(*http.Request) (netip.Addr, bool) { return netip.MustParseAddr("192.0.2.1"), false },
	}
	for _, edit := range edits {
		edit(&o)
	}
	g, err := gateway.New(o)
	check.OK(t, err)
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	w.url, w.upstreamHost, w.Gateway = front.URL, target.Host, g
	return w
}

// jwt returns a token for that user with an invalid signature.
func jwt(sub string) string {
	return jwtPart(`{"alg":"ES256"}`) + "." + jwtPart(fmt.Sprintf(`{"sub":%q}`, sub)) + "." + jwtPart("signature")
}

func jwtPart(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// issues returns an upstream handler that issues tokens for that user.
func issues(sub, refresh string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{"access_token": jwt(sub), "token_type": "Bearer", "expires_in": 300}
		if refresh != "" {
			answer["refresh_token"] = refresh
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func fails(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
}

// answer is an answer of the gateway.
type answer struct {
	status int
	header http.Header
	body   string
}

// token sends a token request of the client shop.
func (w *world) token(form string) answer {
	w.t.Helper()
	return w.send(http.MethodPost, tokenPath, "client_id=shop&client_secret=s&"+form)
}

func (w *world) send(method, path, body string) answer {
	w.t.Helper()
	return w.do(method, path, strings.NewReader(body), nil)
}

// do sends a form with these fields instead of the usual ones.
func (w *world) do(method, path string, body io.Reader, fields map[string]string) answer {
	w.t.Helper()
	req := w.request(w.t.Context(), method, path, body)
	for name, value := range fields {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	check.OK(w.t, err)
	text, err := io.ReadAll(resp.Body)
	check.OK(w.t, err)
	check.OK(w.t, resp.Body.Close())
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// request returns a request with a form, to be sent over the network.
func (w *world) request(ctx context.Context, method, path string, body io.Reader) *http.Request {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, body)
	check.OK(w.t, err)
	req.Header.Set("Content-Type", formType)
	return req
}

// under puts all clients under other settings.
func under(t *testing.T, change func(*ratelimit.Settings)) func(*gateway.Options) {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	change(&settings)
	policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
	return func(o *gateway.Options) { o.Limiter.Policies = func() limiter.Policies { return policies } }
}

func (w *world) wantStatus(what, form string, want int) {
	w.t.Helper()
	check.Equal(w.t, what, w.token(form).status, want)
}

func (w *world) wantCame(want int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	check.Equal(w.t, "requests at the upstream", len(w.came), want)
}

// TestDenied checks that a request over the limit gets our 429 and never reaches the upstream.
func TestDenied(t *testing.T) {
	w := newWorld(t, 2)
	w.upstream(issues("shop", ""))
	for i := range 2 {
		resp := w.token("grant_type=client_credentials")
		check.Equal(t, "status", resp.status, 200)
		check.Equal(t, "RateLimit", resp.header.Get("RateLimit"), fmt.Sprintf(`"user";r=%d;t=61`, 1-i))
	}
	resp := w.token("grant_type=client_credentials")
	check.Equal(t, "status", resp.status, 429)
	check.Equal(t, "Retry-After is set", resp.header.Get("Retry-After") != "", true)
	check.Equal(t, "error", strings.Contains(resp.body, `"temporarily_unavailable"`), true)
	w.wantCame(2)
}

// TestWrongSecretsSpendNothing checks that a request that gets no token does not count.
func TestWrongSecretsSpendNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(fails)
	for range 20 {
		w.wantStatus("wrong secret", "grant_type=client_credentials", 401)
	}
	w.upstream(issues("shop", ""))
	w.wantStatus("right secret", "grant_type=client_credentials", 200)
	w.wantStatus("over the limit", "grant_type=client_credentials", 429)
}

// TestRefreshTokensLeadToTheirUser checks that the answer to a code shows the user, and that the
// refresh tokens lead to that user.
func TestRefreshTokensLeadToTheirUser(t *testing.T) {
	w := newWorld(t, 3)
	w.upstream(issues("ada", "r1"))
	w.wantStatus("code", "grant_type=authorization_code&code=c", 200)
	for i := 1; i <= 2; i++ {
		w.upstream(issues("ada", fmt.Sprintf("r%d", i+1)))
		w.wantStatus("refresh", fmt.Sprintf("grant_type=refresh_token&refresh_token=r%d", i), 200)
	}
	w.wantStatus("over the limit", "grant_type=refresh_token&refresh_token=r3", 429)
	w.upstream(issues("bob", "b1"))
	w.wantStatus("another user", "grant_type=authorization_code&code=d", 200)
	w.wantStatus("refresh of another user", "grant_type=refresh_token&refresh_token=b1", 200)
	w.wantCame(5)
}

// TestRefreshTokensThatStay checks that without a new refresh token in the answer, the one that was
// sent leads to the user in the answer (RFC 6749 6), even if this gateway did not see it issued.
func TestRefreshTokensThatStay(t *testing.T) {
	w := newWorld(t, 2)
	w.upstream(issues("ada", ""))
	for range 2 {
		w.wantStatus("refresh", "grant_type=refresh_token&refresh_token=of-before", 200)
	}
	w.wantStatus("over the limit", "grant_type=refresh_token&refresh_token=of-before", 429)
	w.wantCame(2)
}

// TestUsernamesLeadToTheirSubject checks that a password grant counts together with the other
// grants of its user, whatever the username.
func TestUsernamesLeadToTheirSubject(t *testing.T) {
	w := newWorld(t, 2)
	w.upstream(issues("0b5c", "r1"))
	w.wantStatus("password", "grant_type=password&username=ada&password=p", 200)
	w.wantStatus("refresh", "grant_type=refresh_token&refresh_token=r1", 200)
	w.wantStatus("password over the limit", "grant_type=password&username=ada&password=p", 429)
}

// TestSpacesBeforeNames checks that a leading space makes neither another user nor the key of
// something else.
func TestSpacesBeforeNames(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("", ""))
	w.wantStatus("password", "grant_type=password&username=++total&password=p", 200)
	w.wantStatus("password", "grant_type=password&username=+total&password=p", 429)
	w.wantStatus("password", "grant_type=password&username=total&password=p", 429)
	w.wantStatus("no name", "grant_type=password&username=+&password=p", 200)
}

// TestSpacesInClients checks that a client with a space in its name shares no key with internal
// counts, and that it has the limits of the name that an upstream sees if it does not decode the
// space.
func TestSpacesInClients(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("", ""))
	for i, id := range []string{"internal+x", "internal%20x", "internal%2Bx"} {
		want := http.StatusTooManyRequests
		if i == 0 {
			want = http.StatusOK
		}
		check.Equal(t, id, w.send(http.MethodPost, tokenPath, "client_id="+id+"&grant_type=client_credentials").status, want)
	}
}

// TestTruncated checks that an answer that breaks off counts as one without a token, and that the
// client gets nothing of it.
func TestTruncated(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		issues("shop", "")(rw, r)
	})
	w.wantStatus("truncated", "grant_type=client_credentials", 502)
	w.upstream(issues("shop", ""))
	w.wantStatus("again", "grant_type=client_credentials", 200)
	stats := w.Stats().Requests
	check.Equal(t, "unreachable, issued", []uint64{stats[gateway.Unreachable], stats[gateway.Issued]}, []uint64{1, 1})
}

// TestUsernamesInAnyCase checks that another spelling of a username gives no additional quota. If
// the upstream knows both spellings as users, each counts separately.
func TestUsernamesInAnyCase(t *testing.T) {
	w := newWorld(t, 2)
	w.upstream(issues("0b5c", ""))
	w.wantStatus("password", "grant_type=password&username=ada&password=p", 200)
	w.upstream(issues("77f0", ""))
	w.wantStatus("another user", "grant_type=password&username=Ada&password=p", 200)
	w.upstream(issues("0b5c", ""))
	w.wantStatus("the first one again", "grant_type=password&username=ada&password=p", 200)
	for _, name := range []string{"ada", "ADA", "aDA", "ada+", "%C2%A0ada"} {
		w.wantStatus(name, "grant_type=password&username="+name+"&password=p", 429)
	}
	w.upstream(issues("77f0", ""))
	w.wantStatus("the other again", "grant_type=password&username=Ada&password=p", 200)
}

// TestOtherPathsPassUnchanged checks that other paths pass unchanged, also odd ones.
func TestOtherPathsPassUnchanged(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Seen", r.Header.Get("X-Forwarded-For")+" "+r.Header.Get("X-Forwarded-Proto"))
		rw.WriteHeader(http.StatusTeapot)
	})
	for range 3 {
		resp := w.send(http.MethodPut, "/a%2Fb//c?x=%zz&y;z", "client_id=shop&grant_type=client_credentials")
		check.Equal(t, "status", resp.status, 418)
		check.Equal(t, "seen", resp.header.Get("Seen"), "192.0.2.1")
	}
	check.Equal(t, "came", w.came[0], "PUT /a%2Fb//c?x=%zz&y;z client_id=shop&grant_type=client_credentials")
}

// TestUnreachable checks the answers while the upstream does not answer, and that nothing is
// counted.
func TestUnreachable(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for range 3 {
		resp := w.token("grant_type=client_credentials")
		check.Equal(t, "status", resp.status, 502)
		check.Equal(t, "type", resp.header.Get("Content-Type"), "application/json")
	}
	w.wantCame(3) // no request was repeated
	w.upstream(issues("shop", ""))
	w.wantStatus("again", "grant_type=client_credentials", 200)
}

// TestRefused checks that requests that the upstream could read differently do not get there.
func TestRefused(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("shop", ""))
	w.wantStatus("repeated", "client_id=other&grant_type=client_credentials", 400)
	check.Equal(t, "too large", w.token("grant_type=client_credentials&x="+strings.Repeat("x", gateway.MaxBody)).status, 413)
	check.Equal(t, "query", w.send(http.MethodGet, tokenPath+"?grant_type=client_credentials&client_id=shop", "").status, 400)
	for _, path := range []string{
		"/REALMS/x/protocol/openid-connect/token/", "//realms/x/./protocol;a=b/openid-connect/%74oken", "/realms/x;a%2fb/protocol/openid-connect/token",
	} {
		check.Equal(t, path, w.send(http.MethodPost, path, "client_id=a&client_id=b").status, 400)
	}
	w.wantCame(0)
}

// TestDefects checks that after a defect in a check requests pass, or not, depending on
// OnError.
func TestDefects(t *testing.T) {
	for on, want := range map[gateway.OnError]int{gateway.Allow: 200, gateway.Deny: 503} {
		w := newWorld(t, 1, func(o *gateway.Options) {
			o.OnError = on
			o.Limiter.Policies = func() limiter.Policies { panic("a defect") }
		})
		w.upstream(issues("shop", ""))
		for range 3 {
			w.wantStatus(string(on), "grant_type=client_credentials", want)
		}
	}
}
