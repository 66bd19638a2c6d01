package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/introspection"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/upstream"
	"oauth-server/internal/ratelimit"
)

// introspecting looks up users at the upstream.
func introspecting(o *gateway.Options) { introspectingWithin(o, time.Hour) }

func introspectingWithin(o *gateway.Options, timeout time.Duration) {
	o.Introspection = introspecter(introspection.Endpoint{
		URL: o.Upstream.JoinPath("/introspect"), ClientID: "gateway", ClientSecret: "s", Timeout: timeout,
	}, upstream.New(o.Upstream, upstream.Options{}))
}

// introspecter returns the introspection at an endpoint over a transport.
func introspecter(e introspection.Endpoint, t http.RoundTripper) gateway.Introspection {
	reader, err := subject.NewReader("")
	if err != nil {
		panic(err)
	}
	client, err := introspection.New(e, t, reader)
	if err != nil {
		panic(err)
	}
	return client
}

const (
	opaque     = "opaque-access-token"
	codeGrant  = "grant_type=authorization_code&code=c"
	userOf     = `{"active":true,"sub":"ada","client_id":"shop"}`
	introspect = "POST /introspect token=" + opaque + "&token_type_hint=access_token"
)

// issuesOpaque answers with tokens that show no user, and with introspect at the introspection
// endpoint.
func issuesOpaque(refresh string, introspect http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/introspect" {
			introspect(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":300,"refresh_token":%q}`, opaque, refresh)
	}
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// asked returns the number of introspection requests.
func (w *world) asked() (asked int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, came := range w.came {
		if strings.HasPrefix(came, "POST /introspect") {
			asked++
		}
	}
	return asked
}

func (w *world) wantAsked(want int) {
	w.t.Helper()
	check.Equal(w.t, "users asked for", w.asked(), want)
}

func (w *world) wantUnknown(reason subject.Reason, want uint64) {
	w.t.Helper()
	check.Eventually(w.t, reason.String(), func() bool { return w.Stats().Unknown[reason] == want })
}

// TestIntrospection checks that the client has its answer before the lookup of the user. Then the
// token counts for the user, and its refresh token leads to the user.
func TestIntrospection(t *testing.T) {
	w := newWorld(t, 1, introspecting)
	answered := make(chan struct{})
	w.upstream(issuesOpaque("r1", func(rw http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		check.Equal(t, "credentials", id+" "+secret, "gateway s")
		<-answered
		_, _ = io.WriteString(rw, userOf)
	}))
	got := w.token(codeGrant)
	check.Equal(t, "status", got.status, 200)
	check.Equal(t, "RateLimit-Policy, of no user", got.header.Get("RateLimit-Policy"), "")
	check.Equal(t, "known", w.Stats().Subjects, 0)
	close(answered)
	check.Eventually(t, "the refresh token is known", func() bool { return w.Stats().Subjects == 1 })
	w.wantStatus("refresh", "grant_type=refresh_token&refresh_token=r1", 429)
	w.wantCame(2)
	check.Equal(t, "asked", w.came[1], introspect)
	check.Equal(t, "tokens of no user", w.Stats().Unknown[subject.NoJWT], 0)
}

// TestIntrospectedTooLate checks that the token of a user over the limit is still issued, and
// counted as late.
func TestIntrospectedTooLate(t *testing.T) {
	w := newWorld(t, 1, introspecting)
	w.upstream(issuesOpaque("r1", says(userOf)))
	for range 2 {
		w.wantStatus("code", codeGrant, 200)
	}
	check.Eventually(t, "late", func() bool { return w.Stats().Late == 1 })
}

// TestNotIntrospected checks that there is no request to the endpoint if the user is known, if
// there is no user or no token, or if nothing counts.
func TestNotIntrospected(t *testing.T) {
	off := under(t, func(s *ratelimit.Settings) { s.Mode = ratelimit.Off })
	for name, tc := range map[string]struct {
		form     string
		upstream http.HandlerFunc
		status   int
		unknown  uint64 // tokens that are no JWT
		off      bool
	}{
		"a client of its own": {oneToken, issuesOpaque("", says(`{"active":true,"sub":"shop"}`)), 200, 0, false},
		"a JWT":               {codeGrant, issues("ada", ""), 200, 0, false},
		"no token":            {codeGrant, says(`{}`), 200, 1, false},
		"a number":            {codeGrant, says(`{"access_token":5}`), 200, 1, false},
		"no JSON":             {codeGrant, says(`<html>`), 200, 0, false},
		"too long":            {codeGrant, says(`{"access_token":"` + strings.Repeat("x", subject.MaxToken+1) + `"}`), 200, 1, false},
		"limits are off":      {codeGrant, issuesOpaque("", says(userOf)), 200, 1, true},
		"refused":             {codeGrant, fails, 401, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, introspecting, func(o *gateway.Options) {
				if tc.off {
					off(o)
				}
			})
			w.upstream(tc.upstream)
			w.wantStatus("request", tc.form, tc.status)
			check.OK(t, w.Stop(t.Context()))
			w.wantAsked(0)
			check.Equal(t, "no_jwt", w.Stats().Unknown[subject.NoJWT], tc.unknown)
		})
	}
}

// TestIntrospectedOnce checks that a name that has led to a user does so again without a lookup.
// Another spelling is looked up.
func TestIntrospectedOnce(t *testing.T) {
	w := newWorld(t, 9, introspecting)
	w.upstream(issuesOpaque("r1", says(userOf)))
	known := func(n int) {
		t.Helper()
		check.Eventually(t, "known", func() bool { return w.Stats().Subjects == n })
	}
	w.wantStatus("password", "grant_type=password&username=Ada&password=p", 200)
	known(3) // its name, the name in any case, and r1
	w.upstream(issuesOpaque("r2", says(userOf)))
	w.wantStatus("password again", "grant_type=password&username=Ada&password=p", 200)
	known(4)
	w.wantStatus("refresh", "grant_type=refresh_token&refresh_token=r2", 200)
	w.wantAsked(1)
	w.wantStatus("another spelling", "grant_type=password&username=ada&password=p", 200)
	known(5)
	w.wantAsked(2)
	check.Equal(t, "unknown", w.Stats().Unknown[subject.NoJWT], 0)
	for n := 4; n < 9; n++ {
		w.wantStatus("up to the limit", "grant_type=refresh_token&refresh_token=r1", 200)
	}
	w.wantStatus("all of it is one user's", "grant_type=refresh_token&refresh_token=r1", 429)
}

// TestIntrospectionFails checks that the client has its token, which counts for no user. The reason
// is logged at most once a minute, and never contains the token.
func TestIntrospectionFails(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, userOf)
		}
	}
	for name, tc := range map[string]struct {
		endpoint http.HandlerFunc
		reason   subject.Reason
		logged   string // empty: nothing
	}{
		"inactive":  {says(`{"active":false}`), subject.IntrospectionInactive, ""},
		"401":       {status(401), subject.IntrospectionFailed, "the client_secret is wrong"},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, subject.IntrospectionFailed, "EOF"},
		"no end":    {slow, subject.IntrospectionFailed, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			var log check.Buffer
			now := noon
			w := newWorld(t, 1, introspecting, func(o *gateway.Options) {
				if name == "no end" {
					introspectingWithin(o, 10*time.Millisecond)
				}
				o.Logger, o.Now = slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now }
			})
			w.upstream(issuesOpaque("r1", tc.endpoint))
			for i, after := range []time.Duration{0, 59 * time.Second, 61 * time.Second} {
				now = noon.Add(after)
				w.wantStatus("code", codeGrant, 200)
				w.wantUnknown(tc.reason, uint64(i+1))
			}
			if name != "no end" || w.asked() > 3 { // the time may end before the endpoint is asked
				w.wantAsked(3) // no request was repeated
			}
			lines := strings.Count(log.String(), "introspection failed; tokens count for no user")
			if tc.logged == "" {
				check.Equal(t, "lines", lines, 0)
			} else if lines != 2 || !strings.Contains(log.String(), tc.logged) || !strings.Contains(log.String(), "failed=2") {
				t.Errorf("want two lines about %q, the second of two failures:\n%s", tc.logged, log.String())
			}
			if strings.Contains(log.String(), opaque) {
				t.Errorf("the token is in the log:\n%s", log.String())
			}
		})
	}
}

// slow begins to answer and never ends.
func slow(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, `{"active":true`)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// TestManyIntrospections checks that lookups over the bound are skipped and do not delay clients.
func TestManyIntrospections(t *testing.T) {
	w := newWorld(t, 1, introspecting)
	over, under := make(chan struct{}), make(chan struct{}, gateway.MostIntrospections)
	end := sync.OnceFunc(func() { close(over) })
	t.Cleanup(end)
	w.upstream(issuesOpaque("", func(rw http.ResponseWriter, _ *http.Request) {
		under <- struct{}{}
		<-over
		_, _ = io.WriteString(rw, userOf)
	}))
	for range gateway.MostIntrospections {
		w.wantStatus("code", codeGrant, 200)
	}
	check.Eventually(t, "as many as may be under way at once", func() bool { return len(under) == gateway.IntrospectedAtOnce })
	check.Equal(t, "busy", w.Stats().Unknown[subject.IntrospectionBusy], 0)
	w.wantStatus("one more", codeGrant, 200)
	check.Equal(t, "busy", w.Stats().Unknown[subject.IntrospectionBusy], 1)
	end()
	check.OK(t, w.Stop(t.Context()))
	w.wantAsked(gateway.MostIntrospections)
	check.Equal(t, "late, all but the first", w.Stats().Late, gateway.MostIntrospections-1)
}

// TestStop checks that Stop waits for lookups of users, and cancels them when its time is over.
func TestStop(t *testing.T) {
	for name, inTime := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			var log check.Buffer
			w := newWorld(t, 1, introspecting, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			under, end := make(chan struct{}), make(chan struct{})
			w.upstream(issuesOpaque("r1", func(rw http.ResponseWriter, r *http.Request) {
				close(under)
				select {
				case <-end:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(rw, userOf)
			}))
			w.wantStatus("code", codeGrant, 200)
			<-under
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stopped := make(chan error)
			go func() { stopped <- w.Stop(ctx) }()
			if inTime {
				close(end)
			} else {
				cancel()
			}
			check.OK(t, <-stopped)
			check.Equal(t, "known", w.Stats().Subjects == 1, inTime)
			check.Equal(t, "failed", w.Stats().Unknown[subject.IntrospectionFailed] == 0, inTime)
			if strings.Contains(log.String(), "introspection failed") {
				t.Errorf("the stop is logged as a failure:\n%s", log.String())
			}
			w.wantStatus("after it", codeGrant, 200)
			check.Equal(t, "busy", w.Stats().Unknown[subject.IntrospectionBusy], 1)
		})
	}
}

// TestIntrospectionOfTheGone checks that the token of a client that hung up before its answer
// counts for its user, and that the stop waits for that.
func TestIntrospectionOfTheGone(t *testing.T) {
	w := newWorld(t, 1, introspecting)
	end := w.hangUp(1, codeGrant, issuesOpaque("", says(userOf)))
	end()
	check.OK(t, w.Stop(t.Context()))
	w.wantAsked(1)
	check.Equal(t, "gone", w.Stats().Requests[gateway.Gone], 1)
}

// TestIntrospectionIsChecked checks that a wrong URL or secret is reported at startup, by
// introspecting a token that does not exist.
func TestIntrospectionIsChecked(t *testing.T) {
	for status, want := range map[int]string{200: "", 401: "the client_secret is wrong", 404: "not an introspection endpoint"} {
		var log check.Buffer
		w := newWorld(t, 1, introspecting, func(o *gateway.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, `{"active":false}`)
		})
		w.CheckNow(t.Context())
		w.wantAsked(1)
		if got := log.String(); !strings.Contains(got, want) || (got != "") != (want != "") {
			t.Errorf("%d: logged %q, want %q", status, got, want)
		}
	}
}

// TestIntrospectionDefect checks that a token is still issued if its request cannot be settled.
func TestIntrospectionDefect(t *testing.T) {
	var log check.Buffer
	w := newWorld(t, 1, introspecting, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.IntrospectWith(introspecter(introspection.Endpoint{URL: &url.URL{Scheme: "http", Host: "127.0.0.1"}}, roundTripper(func(*http.Request) (*http.Response, error) { panic("a defect") })))
	w.upstream(issuesOpaque("", says(userOf)))
	w.wantStatus("code", codeGrant, 200)
	check.Eventually(t, "counted", func() bool { return w.Stats().Defects == 1 })
	check.OK(t, w.Stop(t.Context()))
	if strings.Contains(log.String(), opaque) {
		t.Errorf("the token is in the log:\n%s", log.String())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
