package admin_test

import (
	"net/http"
	"testing"
)

// TestCandidateWithABan: the settings for requests over the limits are tried together with the
// limits, and take effect with them.
func TestCandidateWithABan(t *testing.T) {
	for name, tc := range map[string]struct{ candidate, live, below string }{
		"client":  {"/candidates/shop", "/policies/shop", ""},
		"default": {"/candidates/_default", "/settings", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			body := `{"client":[{"requests":3}],"ban":{"denials":2,"for":"10m"},"max_wait":"2s","max_waiting":4,"over_limit":"deny"}`
			a := w.put(tc.candidate, body).is(http.StatusOK)
			equal(t, "ban", a.at("ban", "denials"), any(2.0))
			equal(t, "max_wait", a.at("max_wait"), any("2s"))
			equal(t, "over_limit", a.at("over_limit"), any("deny"))
			since := a.at("since")
			w.clock.Advance(1e9)
			equal(t, "since, after the same again", w.put(tc.candidate, body).is(http.StatusOK).at("since"), since)
			equal(t, "since, after another ban", w.patch(tc.candidate, `{"ban":{"denials":3}}`).is(http.StatusOK).at("since") != since, true)
			live := w.change("POST", tc.candidate+"/promote", "").is(http.StatusOK)
			at := func(path ...any) any {
				if tc.below != "" {
					path = append([]any{tc.below}, path...)
				}
				return live.at(path...)
			}
			equal(t, "ban in force", at("ban", "denials"), any(3.0))
			equal(t, "its length", at("ban", "for"), any("10m"))
			equal(t, "max_wait in force", at("max_wait"), any("2s"))
			equal(t, "max_waiting in force", at("max_waiting"), any(4.0))
			equal(t, "over_limit in force", at("over_limit"), any("deny"))
		})
	}
}

// TestCandidateOverItsLimitsIsRefused: all invalid values are reported at once, with their fields.
func TestCandidateOverItsLimitsIsRefused(t *testing.T) {
	w := newWorld(t)
	a := w.put("/candidates/shop", `{"client":[{"requests":3,"window":"1s"}],"ban":{"denials":0},"max_wait":"5s","over_limit":"reuse"}`).is(http.StatusUnprocessableEntity)
	equal(t, "errors", fieldsOf(a), "max_wait max_wait ban.denials")
	a = w.put("/candidates/shop", `{"ban":{"denials":2}}`).is(http.StatusUnprocessableEntity)
	equal(t, "errors without limits", fieldsOf(a), "user")
}
