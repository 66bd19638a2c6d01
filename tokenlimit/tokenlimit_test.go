package tokenlimit_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/tokenlimit"
)

// world is a Limiter in front of an endpoint that answers as the test says.
type world struct {
	t        *testing.T
	limits   *tokenlimit.Limiter
	endpoint http.HandlerFunc
	events   []tokenlimit.Event
	bodies   []string // received by the endpoint
}

// fields are the names of the RateLimit fields, which keep their capitals on the wire.
var fields = ratelimit.Fields()

// perHour is a limit with a window that no test crosses.
func perHour(n int64) []tokenlimit.Limit {
	return []tokenlimit.Limit{{Requests: n, Window: time.Hour}}
}

func newWorld(t *testing.T, o tokenlimit.Options) *world {
	t.Helper()
	w := &world{t: t, endpoint: opaque}
	o.Observe = func(_ context.Context, e tokenlimit.Event) { w.events = append(w.events, e) }
	var err error
	w.limits, err = tokenlimit.New(o)
	check.OK(t, err)
	return w
}

// ServeHTTP is the endpoint.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	check.OK(w.t, err)
	w.bodies = append(w.bodies, string(body))
	w.endpoint(rw, r)
}

// post sends a form of the client shop.
func (w *world) post(form string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.serve(w.limits.Handler(w), httptest.NewRequest(http.MethodPost, "/token", strings.NewReader("client_id=shop&"+form)))
}

func (w *world) serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func (w *world) want(form string, status int) {
	w.t.Helper()
	check.Equal(w.t, form, w.post(form).Code, status)
}

func (w *world) last() tokenlimit.Event { return w.events[len(w.events)-1] }

// opaque issues a token that shows no user.
func opaque(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"access_token":"opaque","token_type":"Bearer"}`)
}

// issues answers with tokens of that user.
func issues(user, refresh string) http.HandlerFunc {
	enc := base64.RawURLEncoding.EncodeToString
	jwt := enc([]byte(`{"alg":"ES256"}`)) + "." + enc(fmt.Appendf(nil, `{"sub":%q,"name":"n"}`, user)) + "." + enc([]byte("signature"))
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q}`, jwt, refresh)
	}
}

func fails(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }

const credentials = "grant_type=client_credentials"

func TestClientIsLimited(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(2)}})
	first := w.post(credentials)
	check.Equal(t, "status", first.Code, 200)
	check.Equal(t, "body", first.Body.String(), `{"access_token":"opaque","token_type":"Bearer"}`)
	check.Equal(t, "policy", first.Header()[fields.Policy], []string{`"per-1h";q=2;w=3600`})
	check.Equal(t, "event", w.last(), tokenlimit.Event{
		ClientID: "shop", GrantType: "client_credentials", Outcome: tokenlimit.Issued, Status: 200, Limit: "per-1h", Remaining: 1,
	})
	w.want(credentials, 200)
	denied := w.post(credentials)
	check.Equal(t, "status", denied.Code, 429)
	check.Equal(t, "retry", denied.Header().Get("Retry-After") != "", true)
	check.Equal(t, "error", strings.Contains(denied.Body.String(), `"error":"temporarily_unavailable"`), true)
	e := w.last()
	check.Equal(t, "outcome", e.Outcome, tokenlimit.Denied)
	check.Equal(t, "over the limit", e.OverLimit && e.RetryAfter > 0 && e.Status == 429, true)
	check.Equal(t, "bodies", w.bodies, []string{"client_id=shop&" + credentials, "client_id=shop&" + credentials})
}

func TestOtherAnswersDoNotCount(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1)}})
	w.endpoint = fails
	for range 10 {
		w.want(credentials, 401)
	}
	w.endpoint = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }
	w.want(credentials, 204)
	w.endpoint = func(http.ResponseWriter, *http.Request) {} // as for a client that has hung up
	w.want(credentials, 200)
	check.Equal(t, "outcome", w.last().Outcome, tokenlimit.Failed)
	w.endpoint = opaque
	w.want(credentials, 200)
	w.want(credentials, 429)
}

// TestPanicsDoNotCount also covers panics after half of an answer, which the client does not get.
func TestPanicsDoNotCount(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1)}})
	for _, before := range []http.HandlerFunc{func(http.ResponseWriter, *http.Request) {}, opaque} {
		w.endpoint = func(rw http.ResponseWriter, r *http.Request) {
			before(rw, r)
			panic(http.ErrAbortHandler)
		}
		func() {
			defer func() { check.Equal(t, "panic", recover(), any(http.ErrAbortHandler)) }()
			w.post(credentials)
		}()
		check.Equal(t, "outcome", w.last().Outcome, tokenlimit.Failed)
	}
	w.endpoint = opaque
	w.want(credentials, 200)
}

func TestUserClaim(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{UserClaim: "name"})
	w.endpoint = issues("ada", "r1")
	w.want("grant_type=authorization_code&code=c", 200)
	check.Equal(t, "user", w.last().User, "n")
}

// TestSetUser covers an endpoint with opaque tokens that sets their user.
func TestSetUser(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{User: perHour(2)}})
	w.endpoint = func(rw http.ResponseWriter, r *http.Request) {
		tokenlimit.SetUser(r.Context(), "ada")
		tokenlimit.SetUser(r.Context(), " no name")
		_, _ = io.WriteString(rw, `{"access_token":"opaque","refresh_token":"r1"}`)
	}
	w.want("grant_type=password&username=Ada&password=p", 200)
	check.Equal(t, "user", w.last().User, "ada")
	w.want("grant_type=refresh_token&refresh_token=r1", 200)
	w.want("grant_type=password&username=Ada&password=p", 429)
	w.want(credentials, 200)
	check.Equal(t, "user of client_credentials", w.last().User, "")
	tokenlimit.SetUser(t.Context(), "nobody's request")
}

func TestPolicies(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{
		Default: tokenlimit.Policy{Client: perHour(1)},
		Clients: map[string]tokenlimit.Policy{
			"shop":  {User: perHour(2), Client: perHour(2), Total: perHour(2)},
			"tried": {DryRun: true},
			"free":  {Unlimited: true},
		},
	})
	for id, want := range map[string][]int{"shop": {200, 200, 429}, "tried": {200, 200, 200}, "free": {200, 200, 200}, "other": {200, 429, 429}} {
		for i, status := range want {
			form := url.Values{"client_id": {id}, "grant_type": {"client_credentials"}}.Encode()
			got := w.serve(w.limits.Handler(w), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form)))
			check.Equal(t, fmt.Sprintf("%s %d", id, i), got.Code, status)
		}
		check.Equal(t, id+" over the limit", w.last().OverLimit, id != "free")
	}
	w.want("grant_type=authorization_code&code=c", 429)
	check.Equal(t, "limit", w.last().Limit, "total-per-1h")
}

func TestDryRunDeniesNothing(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1), DryRun: true}})
	for range 2 {
		w.want(credentials, 200)
	}
	check.Equal(t, "over the limit", w.last().OverLimit, true)
}

func TestRefused(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{})
	w.want("client_id=other&"+credentials, 400)
	check.Equal(t, "outcome", w.last().Outcome, tokenlimit.Refused)
	w.want(credentials+"&x="+strings.Repeat("x", 64<<10), 413)
	check.Equal(t, "requests at the endpoint", len(w.bodies), 0)
}

// TestLargeAnswersAreStreamed checks that an answer larger than 1 MiB is not held back, and that it
// counts.
func TestLargeAnswersAreStreamed(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1)}})
	var rec *httptest.ResponseRecorder
	part := strings.Repeat("x", 1<<19)
	h := w.limits.Handler(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		for i, written := range []int{0, 0, 3, 4} {
			_, err := io.WriteString(rw, part)
			check.OK(t, err)
			check.OK(t, http.NewResponseController(rw).Flush())
			check.Equal(t, fmt.Sprintf("written after part %d", i+1), rec.Body.Len(), written*len(part))
		}
	}))
	rec = httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("client_id=shop&"+credentials))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h.ServeHTTP(rec, r)
	check.Equal(t, "has fields", len(rec.Header()[fields.Limit]), 1)
	w.want(credentials, 429)
}

// TestFieldsOfOuterHandlers checks that the endpoint shares the header with the handlers around the
// middleware, as without it, whether its answer is held back or not.
func TestFieldsOfOuterHandlers(t *testing.T) {
	for _, status := range []int{200, 401} {
		w := newWorld(t, tokenlimit.Options{})
		w.endpoint = func(rw http.ResponseWriter, r *http.Request) {
			header := rw.Header()
			header.Add("Set-Cookie", "b=2")
			header.Del("X-Outer")
			header.Set("Trailer", "X-Sum")
			rw.WriteHeader(status)
			opaque(rw, r)
			header.Set("X-Sum", "1")
		}
		rec := w.serve(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Set-Cookie", "a=1")
			rw.Header().Set("X-Outer", "1")
			w.limits.Handler(w).ServeHTTP(rw, r)
		}), httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(credentialsOf("shop"))))
		got := rec.Result()
		check.Equal(t, "status", got.StatusCode, status)
		check.Equal(t, "cookies", got.Header["Set-Cookie"], []string{"a=1", "b=2"})
		check.Equal(t, "a field that the endpoint deletes", got.Header["X-Outer"], nil)
		check.Equal(t, "a trailer field in the header", got.Header["X-Sum"], nil)
		check.Equal(t, "trailer", got.Trailer, http.Header{"X-Sum": {"1"}})
	}
}

// TestParsedFormsAreChecked covers a body that an outer handler has parsed.
func TestParsedFormsAreChecked(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1)}})
	h := w.limits.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		check.Equal(t, "client_id", r.PostFormValue("client_id"), "shop")
		opaque(rw, r)
	}))
	for _, want := range []int{200, 429} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("client_id=shop&"+credentials))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		check.OK(t, r.ParseForm())
		check.Equal(t, "status", w.serve(h, r).Code, want)
	}
}

// deadlined records whether the deadline of its connection was set.
type deadlined struct {
	*httptest.ResponseRecorder
	set bool
}

func (d *deadlined) SetReadDeadline(time.Time) error {
	d.set = true
	return nil
}

// TestDeadlinesAreTheServers checks that the deadlines from the server's ReadTimeout stay.
func TestDeadlinesAreTheServers(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{})
	w.endpoint = opaque
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader("client_id=shop&"+credentials))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	d := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	w.limits.Handler(w).ServeHTTP(d, r)
	check.Equal(t, "status", d.Code, 200)
	check.Equal(t, "a read deadline is set", d.set, false)
}

// TestAddresses checks that failed guesses from one address do not limit another address.
func TestAddresses(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{ClientAddr: func(r *http.Request) netip.Addr {
		return netip.MustParseAddr(r.Header.Get("X-Real-Ip"))
	}})
	under, end, done := make(chan struct{}), make(chan struct{}), make(chan int)
	h := w.limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		under <- struct{}{}
		<-end
	}))
	ask := func(h http.Handler, from string) int {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("client_id=shop&"+credentials))
		r.Header.Set("X-Real-Ip", from)
		return w.serve(h, r).Code
	}
	guess := w.limits.Handler(http.HandlerFunc(fails))
	for range 5 {
		check.Equal(t, "status", ask(guess, "192.0.2.1"), 401)
	}
	for _, from := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2"} {
		go func() { done <- ask(h, from) }()
		<-under
	}
	check.Equal(t, "a third one of the first address", ask(h, "192.0.2.1"), 429)
	for range 3 {
		end <- struct{}{}
		check.Equal(t, "status", <-done, 200)
	}
}

func TestOtherMethodsPass(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1)}})
	for _, method := range []string{http.MethodOptions, http.MethodGet, http.MethodHead} {
		check.Equal(t, method, w.serve(w.limits.Handler(w), httptest.NewRequest(method, "/token", nil)).Code, 200)
	}
	check.Equal(t, "events", len(w.events), 0)
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		o    tokenlimit.Options
		says string
	}{
		"requests":          {tokenlimit.Options{Default: tokenlimit.Policy{User: perHour(0)}}, "default.user[0].requests"},
		"window":            {tokenlimit.Options{Default: tokenlimit.Policy{Total: []tokenlimit.Limit{{Requests: 1, Name: "x"}}}}, "default.total[0].window"},
		"client":            {tokenlimit.Options{Clients: map[string]tokenlimit.Policy{"shop": {Client: perHour(0)}}}, "clients.shop.client[0].requests"},
		"twice":             {tokenlimit.Options{Default: tokenlimit.Policy{User: append(perHour(1), perHour(2)...)}}, "already the name of user[0]"},
		"unlimited default": {tokenlimit.Options{Default: tokenlimit.Policy{Unlimited: true}}, "Default.Unlimited"},
		"claim":             {tokenlimit.Options{UserClaim: " sub"}, "claim"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tokenlimit.New(c.o)
			check.ErrorSays(t, err, c.says)
		})
	}
}
