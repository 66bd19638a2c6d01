package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/ratelimit"
)

// summary returns the summary of a change with ?validate=true.
func (w *instance) summary(method, path, body string) string {
	w.t.Helper()
	a := w.change(method, path+"?validate=true", body).is(http.StatusOK)
	return a.at("effect", "summary").(string)
}

const young = " The figures cover only the last 1 second."

// wouldDeny is the start of the summary for a change that widens enforcement.
const wouldDeny = "In the last 10 minutes, this change would have denied "

const notWidened = "This change does not deny more requests."

func TestEffectOfEndingDryRun(t *testing.T) {
	w := newWorld(t)
	w.patch("/settings", `{"mode":"dry_run","default":{"client":[{"requests":5}]}}`).is(http.StatusOK)
	end := func() string {
		t.Helper()
		return w.summary("PATCH", "/settings", `{"mode":"enforce"}`)
	}
	w.clock.Advance(time.Hour)
	check.Equal(t, "no request", end(), wouldDeny+"no request of 0 active clients.")
	w.ask("shop", "", 4)
	check.Equal(t, "no request too many", end(), wouldDeny+"no request of 1 active client.")
	w.ask("shop", "", 4)
	w.ask("app", "", 6)
	w.ask("viewer", "", 1)
	w.ask("ops", "", 5)
	want := wouldDeny + "requests of 2 of 4 active clients: shop (3 requests), app (1 request)."
	check.Equal(t, "two too often", end(), want)
	check.Equal(t, "only one client", w.summary("PATCH", "/policies/app", `{"mode":"enforce"}`),
		wouldDeny+"requests of 1 of 4 active clients: app (1 request).")
	check.Equal(t, "not widened", w.summary("PATCH", "/policies/app", `{"mode":"off"}`), notWidened)
	// The prediction matches the result of enforcing.
	w.patch("/settings", `{"mode":"enforce"}`).is(http.StatusOK)
	w.clock.Advance(5 * time.Minute)
	check.Equal(t, "passed", w.ask("shop", "", 8), 5)
	check.Equal(t, "passed", w.ask("app", "", 6), 5)
	w.clock.Advance(11 * time.Minute)
	check.Equal(t, "not widened", end(), notWidened)
}

// TestEffectForgetsFormerLimits: counts under other limits say nothing about these.
func TestEffectForgetsFormerLimits(t *testing.T) {
	w := newWorld(t)
	w.clock.Advance(time.Hour)
	w.patch("/settings", `{"mode":"dry_run","default":{"client":[{"requests":5}]}}`).is(http.StatusOK)
	w.ask("shop", "", 20)
	w.ask("app", "", 20)
	w.clock.Advance(5 * time.Minute)
	w.patch("/settings", `{"default":{"client":[{"requests":10}]}}`).is(http.StatusOK)
	end := func() string {
		t.Helper()
		return w.summary("PATCH", "/settings", `{"mode":"enforce"}`)
	}
	unclear := "(no counter shows 10 requests in 60s; try a candidate first)"
	check.Equal(t, "no request since", end(), wouldDeny+"no request of 2 active clients. It is unknown for 2: app "+unclear+", shop "+unclear+".")
	w.clock.Advance(3 * time.Minute)
	w.ask("shop", "", 12)
	w.ask("app", "", 9)
	w.clock.Advance(time.Minute)
	check.Equal(t, "asked since", end(),
		wouldDeny+"requests of 1 of 2 active clients: shop (2 requests). The figures cover only the last 1 minute.")
}

func TestEffectOfTheCanaryShare(t *testing.T) {
	w := newWorld(t)
	w.patch("/settings", `{"canary_percent":0,"default":{"client":[{"requests":5}]}}`).is(http.StatusOK)
	ids := []string{"shop", "app", "ops", "viewer", odd}
	for _, id := range ids {
		w.ask(id, "", 7)
	}
	for share := 0.0; share <= 100; share += 10 {
		set := w.policies.Snapshot().Set()
		set.Settings.CanaryPercent = &share
		p := testworld.Policies(t, file(), set)
		inside := 0
		for _, id := range ids {
			if p.For(id).Mode == ratelimit.Enforce {
				inside++
			}
		}
		a := w.change("PATCH", "/settings?validate=true", fmt.Sprintf(`{"canary_percent":%v}`, share)).is(http.StatusOK)
		check.Equal(t, fmt.Sprintf("hit at %v%%", share), len(a.at("effect", "hit").([]any)), inside)
	}
	check.Equal(t, "as it is", w.summary("PATCH", "/settings", `{"canary_percent":0}`), notWidened)
}

func TestEffectOfALowerLimit(t *testing.T) {
	w := newWorld(t)
	w.ask("shop", "", 30)
	w.ask("shop", "ada", 3)
	w.ask("ops", "", 12)
	set := func(body string) string {
		t.Helper()
		s, _, _ := strings.Cut(w.summary("PUT", "/policies/shop", body), ": ")
		return strings.TrimSuffix(s, young)
	}
	check.Equal(t, "below the peak", set(`{"client":[{"requests":29}]}`), wouldDeny+"requests of 1 of 2 active clients")
	check.Equal(t, "at the peak", set(`{"client":[{"requests":30}]}`), wouldDeny+"no request of 2 active clients.")
	check.Equal(t, "users", set(`{"user":[{"requests":2}]}`), wouldDeny+"requests of 1 of 2 active clients")
	check.Equal(t, "higher", set(`{"client":[{"requests":200}]}`), notWidened)
	check.Equal(t, "renamed", set(`{"client":[{"name":"other"}]}`), notWidened)
	if s := w.summary("PUT", "/policies/shop", `{"client":[{"requests":10,"window":"10s"}]}`); !strings.Contains(s,
		"unknown for 1: shop (no counter shows 10 requests in 10s; try a candidate first)") {
		t.Error(s)
	}
	if s := w.summary("PATCH", "/settings", `{"default":{"client":[{"requests":11}]}}`); !strings.Contains(s,
		"denied requests of 2 of 2 active clients: shop (at least 1), ops (at least 1)") {
		t.Error(s)
	}
}

func TestEffectOfOnOutage(t *testing.T) {
	const outage, also = "This change denies more requests only during a store outage.", " It also denies more requests during a store outage."
	limit := func(requests int, onOutage string) string {
		return fmt.Sprintf(`{"client":[{"requests":%d,"on_outage":%q}]}`, requests, onOutage)
	}
	for _, tt := range []struct{ name, before, after, want string }{
		{"the same", limit(10, "share"), limit(10, "share"), notWidened},
		{"denies", limit(10, "share"), limit(10, "deny"), outage},
		{"shares", limit(10, "memory"), limit(10, "share"), outage},
		{"shares instead of denying", limit(10, "deny"), limit(10, "share"), notWidened},
		{"higher, and denies", limit(10, "share"), limit(20, "deny"), outage},
		{"lower, and denies", limit(10, "share"), limit(5, "deny"), wouldDeny + "requests of 1 of 1 active client: shop (at least 1)." + young + also},
		{"lower", limit(10, "share"), limit(5, "share"), wouldDeny + "requests of 1 of 1 active client: shop (at least 1)." + young},
		{"another denies already", `{"client":[{"on_outage":"deny"},{"name":"b","requests":10}]}`, limit(10, "deny"), notWidened},
		{"not enforced", limit(10, "share"), `{"mode":"dry_run","client":[{"on_outage":"deny"}]}`, notWidened},
		{"enforced, and shares", `{"mode":"dry_run","client":[{"requests":10}]}`, limit(10, "share"), wouldDeny + "no request of 1 active client." + young},
		{"enforced, and denies", `{"mode":"dry_run","client":[{"requests":10}]}`, limit(10, "deny"), wouldDeny + "no request of 1 active client." + young + also},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.put("/policies/shop", tt.before).is(http.StatusOK)
			w.ask("shop", "", 7)
			check.Equal(t, "summary", w.summary("PUT", "/policies/shop", tt.after), tt.want)
		})
	}
}

// TestEffectOfACandidateWithAnotherOnOutage: a candidate tried with a different on_outage has the
// same denials.
func TestEffectOfACandidateWithAnotherOnOutage(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"client":[{"requests":10,"window":"10s"}]}`).is(http.StatusOK)
	w.ask("shop", "", 13)
	check.Equal(t, "summary", w.summary("PUT", "/policies/shop", `{"client":[{"requests":10,"window":"10s","on_outage":"deny"}]}`),
		wouldDeny+"requests of 1 of 1 active client: shop (3 requests)."+young+" It also denies more requests during a store outage.")
}

func TestEffectOfPromoting(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"client":[{"requests":10,"window":"10s"}]}`).is(http.StatusOK)
	w.ask("shop", "", 13)
	want := wouldDeny + "requests of 1 of 1 active client: shop (3 requests)." + young
	check.Equal(t, "promote", w.summary("POST", "/candidates/shop/promote", ""), want)
	check.Equal(t, "the same limits by hand", w.summary("PUT", "/policies/shop", `{"client":[{"requests":10,"window":"10s"}]}`), want)
}

func TestEffectOfDistrust(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"trusted":true,"client":[{"requests":5}]}`).is(http.StatusOK)
	w.put("/policies/app", `{"mode":"off"}`).is(http.StatusOK)
	w.ask("shop", "", 9)
	w.ask("app", "", 9)
	for path, why := range map[string]string{"/policies/shop": "trusted", "/policies/app": "mode is off"} {
		if s := w.summary("PUT", path, `{"client":[{"requests":5}]}`); !strings.Contains(s, "denied no request of 2 active clients.") || !strings.Contains(s, why) {
			t.Error(s)
		}
	}
	w.put("/candidates/shop", `{"client":[{"requests":5}],"user":[{}]}`).is(http.StatusOK)
	w.ask("shop", "", 9)
	if s := w.summary("PATCH", "/policies/shop", `{"trusted":false}`); !strings.Contains(s, "shop (4 requests)") {
		t.Error(s)
	}
}

func TestEffectCountsAllInstances(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	a.patch("/settings", `{"mode":"dry_run","default":{"client":[{"requests":5}]}}`).is(http.StatusOK)
	check.OK(t, b.follower.Refresh(t.Context()))
	a.ask("shop", "", 6)
	b.ask("shop", "", 7)
	b.ask("app", "", 1)
	b.publish()
	want := wouldDeny + "requests of 1 of 2 active clients: shop (3 requests)." + young
	check.Equal(t, "both", a.summary("PATCH", "/settings", `{"mode":"enforce"}`), want)
}

// ofAMinute returns the summary of a change, without the note that the figures cover only a minute.
func (w *instance) ofAMinute(path, body string) string {
	w.t.Helper()
	return strings.ReplaceAll(w.summary("PATCH", path, body), " The figures cover only the last 1 minute.", "")
}

// TestEffectOfReuse: a client that gets its last token again is not hit, as far as that is known.
func TestEffectOfReuse(t *testing.T) {
	w := newWorld(t)
	w.patch("/settings", `{"mode":"dry_run","default":{"client":[{"requests":5}]}}`).is(http.StatusOK)
	w.patch("/policies/shop", `{"over_limit":"reuse"}`).is(http.StatusOK)
	w.ask("shop", "", 8)
	w.ask("app", "", 7)
	w.clock.Advance(time.Minute)
	summary := w.ofAMinute
	check.Equal(t, "what dry-run says", summary("/settings", `{"mode":"enforce"}`), wouldDeny+"requests of 1 of 2 active clients: app (2 requests).")
	check.Equal(t, "without reuse", summary("/policies/shop", `{"mode":"enforce","over_limit":"deny"}`),
		wouldDeny+"requests of 1 of 2 active clients: shop (3 requests).")
	unclear := "(the number of requests answered with the last token is unknown; try a candidate or dry-run first)"
	check.Equal(t, "reuse with the change", summary("/policies/app", `{"mode":"enforce","over_limit":"reuse"}`),
		wouldDeny+"no request of 2 active clients. It is unknown for 1: app "+unclear+".")
	w.patch("/settings", `{"mode":"enforce"}`).is(http.StatusOK)
	check.Equal(t, "passed", w.ask("shop", "", 8), 8)
	check.Equal(t, "an end of reuse", summary("/policies/shop", `{"over_limit":null}`),
		wouldDeny+"requests of 1 of 2 active clients: shop (11 requests).")
	check.Equal(t, "a beginning", summary("/policies/app", `{"over_limit":"reuse"}`), notWidened)
}

// TestEffectOfWaiting: a queued request is not denied, as far as that is known.
func TestEffectOfWaiting(t *testing.T) {
	w := newWorld(t)
	w.patch("/settings", `{"mode":"dry_run","default":{"client":[{"requests":5}],"user":[{"requests":5}]}}`).is(http.StatusOK)
	w.patch("/policies/shop", `{"max_wait":"2s"}`).is(http.StatusOK)
	w.ask("shop", "ada", 8)
	w.ask("app", "", 7)
	w.clock.Advance(time.Minute)
	summary := w.ofAMinute
	check.Equal(t, "what dry-run says", summary("/settings", `{"mode":"enforce"}`), wouldDeny+"requests of 1 of 2 active clients: app (2 requests).")
	hit := wouldDeny + "requests of 1 of 2 active clients: shop (3 requests)."
	check.Equal(t, "without a wait", summary("/policies/shop", `{"mode":"enforce","max_wait":"0s"}`), hit)
	unclear := "(the number of requests that would wait is unknown; try dry-run first)"
	check.Equal(t, "a wait with the change", summary("/policies/app", `{"mode":"enforce","max_wait":"2s"}`),
		wouldDeny+"no request of 2 active clients. It is unknown for 1: app "+unclear+".")
	w.patch("/settings", `{"mode":"enforce"}`).is(http.StatusOK)
	check.Equal(t, "passed", w.ask("shop", "ada", 8), 8)
	check.Equal(t, "an end of waiting", summary("/policies/shop", `{"max_wait":null}`),
		wouldDeny+"requests of 1 of 2 active clients: shop (11 requests).")
	check.Equal(t, "fewer places", summary("/policies/shop", `{"max_waiting":3}`),
		wouldDeny+"no request of 2 active clients. It is unknown for 1: shop "+unclear+".")
	check.Equal(t, "a beginning", summary("/policies/app", `{"max_wait":"2s"}`), notWidened)
}

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
			check.Equal(t, "summary", w.summary("PUT", "/policies/shop", `{`+tt.change+`}`), wouldDeny+"no request of 1 active client"+tt.want+young)
		})
	}
}

// TestEffectOfOneUser: a change for one user does not use the figures of other users.
func TestEffectOfOneUser(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"user":[{"requests":3}]}`).is(http.StatusOK)
	w.ask("shop", "ada", 9)
	unknown := wouldDeny + "no request of 1 active client. It is unknown for 1: shop (requests per user are not recorded; see limits top --counters)."
	check.Equal(t, "of another user", strings.TrimSuffix(w.summary("PUT", "/policies/shop/users/bob", `{"user":[{"name":"b","requests":1}]}`), young), unknown)
	some, _, _ := strings.Cut(w.summary("PUT", "/policies/shop/users/bob", `{"user":[{"requests":2,"grants":["refresh_token"]}]}`), young)
	check.Equal(t, "of some grants", some, unknown)
}

// TestEffectOnGrantsThatLoseTheirLimits: the summary lists grants that lose their limit by user.
func TestEffectOnGrantsThatLoseTheirLimits(t *testing.T) {
	w := newWorld(t)
	const refreshes = `{"user":[{"requests":100,"grants":["refresh_token"]}]}`
	const lost = " Requests of authorization_code and password are no longer limited per user."
	check.Equal(t, "of a list", w.summary("PUT", "/policies/shop", refreshes), notWidened+lost)
	check.Equal(t, "of a user", w.summary("PUT", "/policies/shop/users/ada", refreshes), notWidened+lost)
	check.Equal(t, "beside another", w.summary("PUT", "/policies/shop", `{"user":[{"requests":100,"grants":["refresh_token"]},{"name":"all","requests":100}]}`), notWidened)
	check.Equal(t, "trusted", w.summary("PUT", "/policies/shop", `{"trusted":true,"user":[{"requests":100,"grants":["refresh_token"]}]}`), notWidened)
	all := `{"user":[{"requests":50,"grants":["refresh_token","password"]}]}`
	check.Equal(t, "of one grant", w.summary("PUT", "/policies/shop", all), wouldDeny+"no request of 0 active clients."+young+
		" Requests of authorization_code are no longer limited per user.")
	w.put("/policies/shop", refreshes).is(http.StatusOK)
	check.Equal(t, "not before either", w.summary("PUT", "/policies/shop", `{"user":[{"requests":200,"grants":["refresh_token"]}]}`), notWidened)
}
