package admin_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestEffectAfterAListChanged: the peaks of a list are not used for another list that was removed
// or added since the last request.
func TestEffectAfterAListChanged(t *testing.T) {
	const source, total = `"source":[{"name":"per-address","requests":50}]`, `"total":[{"name":"of-all","requests":500}]`
	const none, unknown = ".", ". It is unknown for 1: shop (no counter shows 2 requests in 60s; try a candidate first)."
	for _, tt := range []struct{ name, before, since, change, want string }{
		{"a source was removed", source, ``, `"user":[{"requests":5}]`, none},
		{"a source was added", ``, source, `"source":[{"name":"per-address","requests":2}]`, unknown},
		{"a total was removed", total, ``, `"user":[{"requests":5}]`, none},
		{"a total was added", ``, total, `"total":[{"name":"of-all","requests":2}]`, unknown},
		{"a limit was changed", ``, `"user":[{"requests":50}]`, `"user":[{"requests":5}]`, none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.put("/policies/shop", `{`+tt.before+`}`).is(http.StatusOK)
			for _, user := range []string{"ada", "bob", "cyd"} {
				w.askAs("shop", user, 0, home, 3)
			}
			w.put("/policies/shop", `{`+tt.since+`}`).is(http.StatusOK)
			equal(t, "summary", w.summary("PUT", "/policies/shop", `{`+tt.change+`}`), wouldDeny+"no request of 1 active client"+tt.want+young)
		})
	}
}

// TestEffectOfOneUser: a change for one user does not use the figures of other users.
func TestEffectOfOneUser(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"user":[{"requests":3}]}`).is(http.StatusOK)
	w.ask("shop", "ada", 9)
	unknown := wouldDeny + "no request of 1 active client. It is unknown for 1: shop (what each user has requested is not kept; look at limits top --counters)."
	equal(t, "of another user", strings.TrimSuffix(w.summary("PUT", "/policies/shop/users/bob", `{"user":[{"name":"b","requests":1}]}`), young), unknown)
	some, _, _ := strings.Cut(w.summary("PUT", "/policies/shop/users/bob", `{"user":[{"requests":2,"grants":["refresh_token"]}]}`), young)
	equal(t, "of some grants", some, unknown)
}

// TestEffectOnGrantsThatLoseTheirLimits: the summary lists grants that lose their limit by user.
func TestEffectOnGrantsThatLoseTheirLimits(t *testing.T) {
	w := newWorld(t)
	const refreshes = `{"user":[{"requests":100,"grants":["refresh_token"]}]}`
	const lost = " Requests of authorization_code and password are not limited by user any more."
	equal(t, "of a list", w.summary("PUT", "/policies/shop", refreshes), notWidened+lost)
	equal(t, "of a user", w.summary("PUT", "/policies/shop/users/ada", refreshes), notWidened+lost)
	equal(t, "beside another", w.summary("PUT", "/policies/shop", `{"user":[{"requests":100,"grants":["refresh_token"]},{"name":"all","requests":100}]}`), notWidened)
	equal(t, "trusted", w.summary("PUT", "/policies/shop", `{"trusted":true,"user":[{"requests":100,"grants":["refresh_token"]}]}`), notWidened)
	all := `{"user":[{"requests":50,"grants":["refresh_token","password"]}]}`
	equal(t, "of one grant", w.summary("PUT", "/policies/shop", all), wouldDeny+"no request of 0 active clients."+young+
		" Requests of authorization_code are not limited by user any more.")
	w.put("/policies/shop", refreshes).is(http.StatusOK)
	equal(t, "not before either", w.summary("PUT", "/policies/shop", `{"user":[{"requests":200,"grants":["refresh_token"]}]}`), notWidened)
}
