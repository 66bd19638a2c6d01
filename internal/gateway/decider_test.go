package gateway_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
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

// newDecider admits one request an hour for each user and each client, three for a client in total,
// and two from one address.
func newDecider(t *testing.T, edits ...func(*gateway.Options)) http.Handler {
	t.Helper()
	limit := func(name string, n int64) []ratelimit.Limit {
		return []ratelimit.Limit{ratelimit.NewLimit(name, n, time.Hour)}
	}
	settings := ratelimit.DefaultSettings()
	settings.Default = ratelimit.Policy{User: limit("own", 1), Client: limit("own", 1), Total: limit("total", 3), Source: limit("source", 2)}
	policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
	o := gateway.Options{
		Limiter: limiter.New(limiter.Options{
			Counters: counting.NewCounters(0), Clock: func() time.Time { return noon },
			Policies: func() limiter.Policies { return policies },
		}),
		ClientAddr: func(r *http.Request) (netip.Addr, bool) {
			a, _ := netip.ParseAddr(r.Header.Get("X-Forwarded-For"))
			return a, true
		},
	}
	for _, edit := range edits {
		edit(&o)
	}
	h, err := gateway.NewDecider(o)
	check.OK(t, err)
	return h
}

// asked is a question and its answer.
type asked struct {
	method, path, query, from, kind, body string // defaults: POST, DecidePath, no query, 192.0.2.1, a form
	basic, uri                            string // client_id; the URL of the token request, as proxies write it
	want                                  int
}

func (q *asked) send(h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest(cmp.Or(q.method, http.MethodPost), cmp.Or(q.path, gateway.DecidePath)+q.query, strings.NewReader(q.body))
	r.Header.Set("Content-Type", cmp.Or(q.kind, formType))
	r.Header.Set("X-Forwarded-For", cmp.Or(q.from, "192.0.2.1"))
	r.Header.Set("X-Forwarded-Uri", q.uri)
	if q.basic != "" {
		r.SetBasicAuth(q.basic, "secret")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestDecider(t *testing.T) {
	const inJSON, atQuestion = "application/json", gateway.QuestionPath
	for name, all := range map[string][]asked{
		"a client": {
			{body: "client_id=shop&grant_type=client_credentials", want: 200},
			{body: "client_id=shop&grant_type=client_credentials", want: 429},
			{basic: "other", body: "grant_type=client_credentials", want: 200},
		},
		"without a body": {
			{basic: "shop", query: "?grant_type=client_credentials", want: 200},
			{basic: "shop", query: "?grant_type=client_credentials", want: 429},
			{basic: "other", method: http.MethodGet, query: "?grant_type=client_credentials", want: 200},
			{method: http.MethodGet, body: "client_id=other&grant_type=client_credentials", want: 429},
		},
		"the query of the token request": {
			{basic: "shop", body: "grant_type=client_credentials", uri: "/token?client_id=other", want: 400},
			{basic: "shop", body: "grant_type=client_credentials", uri: "/token?grant_type=password", want: 400},
			{basic: "shop", body: "grant_type=client_credentials", uri: "/token?scope=read", want: 200},
			{basic: "shop", query: "?grant_type=client_credentials", uri: "/token?", want: 429},
		},
		"the body says the grant": {
			{basic: "shop", query: "?grant_type=client_credentials", body: "grant_type=password&username=ada", want: 200},
			{basic: "shop", query: "?grant_type=client_credentials", want: 200},
		},
		"a user": {
			{body: "client_id=shop&grant_type=password&username=ada", want: 200},
			{body: "client_id=shop&grant_type=password&username=ada", want: 429},
			{body: "client_id=shop&grant_type=password&username=bob", want: 200},
		},
		"users who are not known, by the source and the total": {
			{body: "client_id=shop&grant_type=refresh_token&refresh_token=r", want: 200},
			{body: "client_id=shop&grant_type=refresh_token&refresh_token=r", want: 200},
			{body: "client_id=shop&grant_type=refresh_token&refresh_token=r", want: 429},
			{body: "client_id=shop&grant_type=refresh_token&refresh_token=r", from: "192.0.2.2", want: 200},
			{body: "client_id=shop&grant_type=refresh_token&refresh_token=r", from: "192.0.2.3", want: 429},
		},
		"JSON": {
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","user":"ada","grant_type":"refresh_token"}`, want: 200},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","user":"ada","grant_type":"authorization_code"}`, want: 429},
			{path: atQuestion, kind: inJSON + "; charset=utf-8", body: `{"client_id":"shop","user":"x","grant_type":"client_credentials"}`, want: 200},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","grant_type":"client_credentials"}`, want: 429},
		},
		"the address in JSON": {
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","address":"192.0.2.9"}`, want: 200},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","address":"::ffff:192.0.2.9"}`, want: 200},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","address":"192.0.2.9"}`, want: 429},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop"}`, want: 200},
		},
		"a token request in JSON names no user or address of others": {
			{kind: inJSON, body: `{"client_id":"shop","user":"ada","address":"192.0.2.9","grant_type":"refresh_token","refresh_token":"r"}`, want: 200},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","user":"ada","grant_type":"refresh_token"}`, want: 200},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","address":"192.0.2.9"}`, want: 200},
			{kind: inJSON, body: `{"client_id":"other","username":"ada","grant_type":"password"}`, want: 200},
			{body: "client_id=other&username=ada&grant_type=password", want: 429},
		},
		"no client": {
			{body: "grant_type=client_credentials", want: 200},
			{body: "grant_type=client_credentials", want: 200},
		},
		"not to be understood": {
			{basic: "shop", body: "client_id=other", want: 400},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop"`, want: 400},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop"}{}`, want: 400},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop"}]`, want: 400},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","client_secret":"s"}`, want: 400},
			{path: atQuestion, kind: inJSON, body: `{"user":"ada"}`, want: 400},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","user":" total"}`, want: 400},
			{path: atQuestion, kind: inJSON, body: `{"client_id":"shop","address":"here"}`, want: 400},
			{body: "client_id=shop&x=" + strings.Repeat("x", gateway.MaxBody), want: 413},
			{method: http.MethodPut, body: "client_id=shop", want: 405},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newDecider(t)
			for i, q := range all {
				check.Equal(t, fmt.Sprint("status of question ", i+1), q.send(h).Code, q.want)
			}
		})
	}
}

// TestDeciderAnswers checks that 200 and 429 have the limit fields.
func TestDeciderAnswers(t *testing.T) {
	h, q, names := newDecider(t), asked{body: "client_id=shop&grant_type=client_credentials"}, ratelimit.Fields()
	passed := q.send(h)
	check.Equal(t, "status", passed.Code, 200)
	check.Equal(t, "fields", len(passed.Header()[names.Limit])+len(passed.Header()[names.Policy]), 2)
	check.Equal(t, "body", passed.Body.Len(), 0)
	denied := q.send(h)
	check.Equal(t, "status", denied.Code, 429)
	check.Equal(t, "fields", len(denied.Header()[names.Limit])+len(denied.Header()[names.Policy]), 2)
	check.Equal(t, "Retry-After is set", denied.Header().Get("Retry-After") != "", true)
	check.Equal(t, "body", strings.Contains(denied.Body.String(), `"error":"temporarily_unavailable"`), true)
}
