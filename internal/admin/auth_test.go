package admin_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

func TestNothingIsOpenWithoutAToken(t *testing.T) {
	w := newWorld(t)
	for route := range map[string]bool{
		"GET /settings": true, "PUT /settings": true, "GET /policies": true, "DELETE /policies/shop": true, "POST /candidates/shop/promote": true,
		"GET /clients": true, "DELETE /clients/shop/counters": true, "GET /top": true, "GET /audit": true, "GET /instances": true,
		"GET /openapi.json": true, "GET /nothing/here": true, "GET ": true,
	} {
		method, path, _ := strings.Cut(route, " ")
		a := w.send(request{method: method, path: path}).is(http.StatusUnauthorized)
		// RFC 6750 3.1: no error code if there was no token.
		if got := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer ") ||
			strings.Contains(got, "error=") || !strings.Contains(got, `issuer="https://issuer.example"`) {
			t.Errorf("%s: the challenge is %s", route, got)
		}
	}
}

// Attack (operators): A user without rights at the admin API. Every request needs an admin
// token, its scope and, for users, the current operator right. Also admin.TestOperatorNow,
// e2e.TestOnlyOperatorsUseTheAdminAPI.
func TestWhoMay(t *testing.T) {
	w := newWorld(t)
	etag := w.get("/settings").header.Get("ETag")
	tests := []struct {
		name, token string
		read, write int
		says        string
	}{
		{"an admin client", writer, 200, 200, ""},
		{"one that may only read", reader, 200, 403, "ratelimit:write"},
		{"an operator", "of-a-user", 200, 200, ""},
		{"an operator who may only read", "of-a-reader", 200, 403, `"rob" may only read`},
		{"any other user of an admin client", "of-a-stranger", 403, 403, `"eve" is not an operator`},
		{"a level that a newer release has stored", "of-the-future", 403, 403, "not an operator"},
		{"a user deleted meanwhile", "of-one-deleted", 403, 403, "not an operator"},
		{"a user about whom nothing is known", "untold", 503, 503, "store"},
		{"a token with a second audience", "two-audience", 200, 403, ""},
		{"a plain client, whatever its scope", "plain", 401, 401, "audience"},
		{"an admin client's token without a scope", "no-scope", 403, 403, ""},
		{"a scope that the client has lost", "lost-scope", 403, 403, ""},
		{"a client that is gone", "lost-client", 403, 403, ""},
		{"garbage", "garbage", 401, 401, "expired"},
		{"nobody can tell", "store-down", 503, 503, "store"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			w.send(request{method: "GET", path: "/settings", token: tt.token}).is(tt.read)
			a := w.send(request{
				method: "PATCH", path: "/settings?validate=true", token: tt.token, ifMatch: etag,
				contentType: "application/merge-patch+json", body: "{}",
			}).is(tt.write)
			if tt.says != "" {
				a.says(tt.says)
			}
			challenge := map[int]string{200: "", 503: "", 401: `error="invalid_token"`, 403: `error="insufficient_scope"`}[tt.write]
			if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, challenge) || challenge == "" && got != "" {
				t.Errorf("the challenge is %q, want one with %s", got, challenge)
			}
		})
	}
}

// TestOperatorNow: a user's access is read from the store at each request.
func TestOperatorNow(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		access clientcfg.Access
		want   int
	}{{clientcfg.NoAccess, 403}, {clientcfg.ReadAccess, 200}, {clientcfg.NoAccess, 403}, {clientcfg.WriteAccess, 200}} {
		check.OK(t, w.store.ChangeUser(t.Context(), "ada", func(u *accounts.User) (clientcfg.Event, error) {
			u.Operator = step.access
			return clientcfg.Event{}, nil
		}))
		w.send(request{method: "GET", path: "/settings", token: "of-a-user"}).is(step.want)
	}
}

// TestAuditNamesTheUser: the entry names the signed-in user and the client.
//
// Attack (operators): Changes without a trace. The audit trail names client and user.
func TestAuditNamesTheUser(t *testing.T) {
	w := newWorld(t)
	etag := w.get("/settings").header.Get("ETag")
	w.send(request{
		method: "PATCH", path: "/settings", token: "of-a-user", ifMatch: etag,
		contentType: "application/merge-patch+json", body: `{"mode":"dry_run"}`,
	}).is(http.StatusOK)
	w.get("/audit").has("entries.0.actor.client_id=ops", "entries.0.actor.username=ada")
}

// Attack (rfc9700): 4.3.2 token in the history. Tokens and secrets in a URL are refused. Also
// httpapi.TestBadForm.
func TestTokensStandInTheHeaderOnly(t *testing.T) {
	w := newWorld(t)
	w.send(request{method: "GET", path: "/settings?access_token=" + writer}).is(http.StatusUnauthorized)
}

func TestFailedAttemptsAreLimited(t *testing.T) {
	w := newWorld(t)
	try := func(token, remote string) answer {
		t.Helper()
		return w.send(request{method: "GET", path: "/settings", token: token, remote: remote})
	}
	status := map[int]int{}
	for i := range 30 {
		status[try("guess-"+strconv.Itoa(i), "[2001:db8:0:1::"+strconv.Itoa(i+1)+"]:1234").status]++
	}
	if status[401] != 20 || status[429] != 10 {
		t.Errorf("30 failures from one /64 were answered %v", status)
	}
	wait := try("guess", "[2001:db8:0:1::1]:1").is(429).header.Get("Retry-After")
	if n, err := strconv.Atoi(wait); err != nil || n < 1 || n > 120 {
		t.Errorf("Retry-After: %q", wait)
	}
	try(writer, "[2001:db8:0:1::1]:1").is(200) // a valid token is always accepted
	try("", "[2001:db8:0:1::1]:1").is(401)
	try("guess", "192.0.2.1:1").is(401)
	try("guess", "[2001:db8:0:2::1]:1").is(401)
}
