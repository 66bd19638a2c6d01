package gateway_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oauth-server/internal/check"
	"oauth-server/internal/check/browser"
	"oauth-server/internal/gateway"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
)

const spa = "https://app.example"

// asScript posts a form from a script of that origin. Empty: not from a script.
func asScript(h http.Handler, target, origin, form string) http.Header {
	header, _ := statusFor(h, http.MethodPost, target, origin, form)
	return header
}

func statusFor(h http.Handler, method, target, origin, form string) (http.Header, int) {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Header(), rec.Code
}

// exposed reports whether scripts that may read an answer may read a field of it.
func exposed(h http.Header, name string) bool {
	all := strings.Split(strings.ToLower(strings.Join(h["Access-Control-Expose-Headers"], ",")), ",")
	return slices.ContainsFunc(all, func(s string) bool { return strings.TrimSpace(s) == name })
}

// wantReadable checks that a script of that origin may read the answer and its fields, even if it
// sent cookies.
func wantReadable(t *testing.T, origin string, h http.Header) {
	t.Helper()
	credentials := []string{"true"}
	if origin == "" {
		credentials = nil
	}
	check.Equal(t, "origin", h["Access-Control-Allow-Origin"], []string{cmp.Or(origin, "*")})
	check.Equal(t, "credentials of "+origin, h["Access-Control-Allow-Credentials"], credentials)
	check.Equal(t, "Vary", h["Vary"], []string{"Origin"})
	for _, name := range []string{"retry-after", "ratelimit", "ratelimit-policy"} {
		check.Equal(t, name+" is exposed", exposed(h, name), true)
	}
}

func breaksOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// TestScriptsReadOwnAnswers checks that scripts of other sites may read every answer of the gateway
// itself, and do not just see a network failure.
func TestScriptsReadOwnAnswers(t *testing.T) {
	const form = "client_id=shop&grant_type=client_credentials"
	for name, tc := range map[string]struct {
		edit               func(*gateway.Options)
		method, path, body string
		upstream           http.HandlerFunc
		want               int
	}{
		"over the limit": {want: 429, body: form, upstream: issues("shop", "")},
		"ambiguous":      {want: 400, body: form + "&client_id=other"},
		"opaque":         {want: 400, path: "x:y", body: form},
		"another method": {want: 405, path: "/x", method: "PRI"},
		"too long":       {want: 413, body: form + strings.Repeat("x", gateway.MaxBody)},
		"unreachable":    {want: 502, body: form, upstream: breaksOff},
		"another path":   {want: 502, path: "/userinfo", upstream: breaksOff},
		"another host": {want: 421, body: form, edit: func(o *gateway.Options) {
			o.PublicURL = &url.URL{Scheme: "https", Host: "auth.example.com"}
		}},
		"too slow": {
			want: 504, body: form, edit: func(o *gateway.Options) { o.AnswerWithin = time.Millisecond },
			upstream: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		},
		"not checked": {want: 503, body: form, edit: func(o *gateway.Options) {
			o.OnError, o.Limiter.Policies = gateway.Deny, func() limiter.Policies { panic("a defect") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			edit := tc.edit
			if edit == nil {
				edit = func(*gateway.Options) {}
			}
			w := newWorld(t, 1, edit)
			w.upstream(tc.upstream)
			if tc.want == http.StatusTooManyRequests {
				w.wantStatus("the first one", "grant_type=client_credentials", 200)
			}
			for _, origin := range []string{spa, "null", ""} {
				header, status := statusFor(w, cmp.Or(tc.method, http.MethodPost), cmp.Or(tc.path, tokenPath), origin, tc.body)
				check.Equal(t, "status", status, tc.want)
				wantReadable(t, origin, header)
			}
		})
	}
}

// TestScriptsReadTheFieldsOfPassedAnswers checks that the upstream's answer stays unchanged, except
// for the fields that the gateway adds if a script may read it.
func TestScriptsReadTheFieldsOfPassedAnswers(t *testing.T) {
	const allow, expose = "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"
	names := ratelimit.Fields()
	const added = "RateLimit, RateLimit-Policy"
	for name, tc := range map[string]struct {
		header http.Header // of the upstream
		answer http.HandlerFunc
		want   []string // exposed fields
	}{
		"not allowed":            {http.Header{}, issues("shop", ""), nil},
		"allowed":                {http.Header{allow: {spa}}, issues("shop", ""), []string{added}},
		"any":                    {http.Header{allow: {"*"}}, issues("shop", ""), []string{added}},
		"with fields of its own": {http.Header{allow: {spa}, expose: {"X-Own"}}, issues("shop", ""), []string{"X-Own", added}},
		"with its own limits":    {http.Header{allow: {spa}, "Ratelimit": {"its own"}}, issues("shop", ""), nil},
		"an error":               {http.Header{allow: {spa}}, fails, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.upstream(func(rw http.ResponseWriter, r *http.Request) {
				for field, values := range tc.header {
					rw.Header()[field] = values
				}
				tc.answer(rw, r)
			})
			got := asScript(w, tokenPath, spa, "client_id=shop&grant_type=client_credentials")
			check.Equal(t, "origin", got[allow], tc.header[allow])
			check.Equal(t, "exposed", got[expose], tc.want)
			check.Equal(t, "Vary", got["Vary"], nil)
			if tc.want != nil {
				check.Equal(t, "RateLimit is there", got[names.Limit] != nil, true)
			}
		})
	}
}

// TestScriptsReadAnswersOfTheDecider checks the answers that proxies pass on.
func TestScriptsReadAnswersOfTheDecider(t *testing.T) {
	for _, origin := range []string{spa, ""} {
		h := newDecider(t)
		asScript(h, gateway.DecidePath, origin, "client_id=shop&grant_type=client_credentials")
		for form, want := range map[string]int{
			"client_id=shop&grant_type=client_credentials": 429, "client_id=shop&client_id=other": 400, strings.Repeat("x", gateway.MaxBody+1): 413,
		} {
			header, status := statusFor(h, http.MethodPost, gateway.DecidePath, origin, form)
			check.Equal(t, "status", status, want)
			wantReadable(t, origin, header)
		}
		header, status := statusFor(h, http.MethodPost, gateway.QuestionPath, origin, `{"client_id":""}`)
		check.Equal(t, "status", status, 400)
		wantReadable(t, origin, header)
	}
}

// TestBrowserReadsOwnAnswers checks that a page of another site gets the gateway's answers, with
// and without cookies.
func TestBrowserReadsOwnAnswers(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(func(rw http.ResponseWriter, r *http.Request) { // an identity provider that allows the site
		rw.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		rw.Header().Set("Access-Control-Allow-Credentials", "true")
		issues("shop", "")(rw, r)
	})
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	ctx := browser.New(t)
	check.OK(t, chromedp.Do(ctx, chromedp.Navigate(site.URL)))
	ask := func(client, more, credentials string) string {
		t.Helper()
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`
			fetch(%q, {method: "POST", credentials: %q, body: new URLSearchParams("client_id=%s&grant_type=client_credentials%s")}).then(
				async r => [r.status, (await r.json()).error, !!r.headers.get("Retry-After"), !!r.headers.get("RateLimit"), !!r.headers.get("RateLimit-Policy")].join(" "),
				e => String(e))`, w.url+tokenPath, credentials, client, more), chromedp.EvalAwaitPromise))
		check.OK(t, err)
		return v
	}
	for _, credentials := range []string{"omit", "include"} {
		check.Equal(t, "a token", ask(credentials, "", credentials), "200  false true true")
		check.Equal(t, "over the limit", ask(credentials, "", credentials), "429 temporarily_unavailable true true true")
		check.Equal(t, "ambiguous", ask(credentials, "&client_id=x", credentials), "400 invalid_request false false false")
	}
	w.upstream(breaksOff)
	check.Equal(t, "unreachable", ask("other", "", "include"), "502 temporarily_unavailable false false false")
}
