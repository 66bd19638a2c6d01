package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/check"
)

// TestWhatBecomesOfRequests: each setting is shown with the tier, policy or settings that set it,
// and among the values in force, and goes when it is taken back.
func TestWhatBecomesOfRequests(t *testing.T) {
	for _, tt := range []struct {
		field                   string
		usual                   string // in force without it
		tier, policy, all       string
		ofTier, ofPolicy, ofAll string // in force; empty: as set
	}{
		{field: "over_limit", usual: `"deny"`, tier: `"reuse"`, policy: `"deny"`, all: `"reuse"`},
		{field: "max_wait", usual: `null`, tier: `"2s"`, policy: `"0s"`, ofPolicy: `null`, all: `"1.5s"`},
		{field: "criticality", usual: `null`, tier: `"sheddable_plus"`, policy: `"critical_plus"`, all: `"sheddable"`},
		{
			field: "ban", usual: `null`, tier: `{"denials":7}`, policy: `"off"`, ofPolicy: `null`, all: `{"denials":5,"for":"1h"}`,
			ofTier: `{"denials":7,"factor":2,"for":"5m","forget":"24h","max":"24h","within":"1m"}`,
			ofAll:  `{"denials":5,"factor":2,"for":"1h","forget":"24h","max":"24h","within":"1m"}`,
		},
	} {
		t.Run(tt.field, func(t *testing.T) {
			w := newWorld(t)
			says := func(a answer, want, set string, at ...any) {
				t.Helper()
				got, err := json.Marshal(a.at(append(at, tt.field)...))
				check.OK(t, err)
				if want == "" {
					want = set
				}
				check.Equal(t, fmt.Sprint(at...), string(got), want)
			}
			set := func(value string) string { return fmt.Sprintf(`{%q:%s}`, tt.field, value) }
			says(w.get("/policies/shop"), tt.usual, "", "effective")
			says(w.create("/tiers/gold", set(tt.tier)).is(http.StatusOK), tt.ofTier, tt.tier)
			a := w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
			says(a, "null", "")
			says(a, tt.ofTier, tt.tier, "effective")
			a = w.patch("/policies/shop", set(tt.policy)).is(http.StatusOK)
			says(a, "", tt.policy)
			says(a, tt.ofPolicy, tt.policy, "effective")
			a = w.patch("/settings", `{"default":`+set(tt.all)+`}`).is(http.StatusOK)
			says(a, tt.ofAll, tt.all, "default")
			check.Equal(t, "changed", fmt.Sprint(a.at("meta", "changed")), "[default."+tt.field+"]")
			says(w.get("/policies/app"), tt.ofAll, tt.all, "effective")
			says(w.patch("/policies/shop", set("null")).is(http.StatusOK), tt.ofTier, tt.tier, "effective")
			w.patch("/settings", `{"default":`+set("null")+`}`).is(http.StatusOK)
			says(w.get("/policies/app"), tt.usual, "", "effective")
		})
	}
	w := newWorld(t)
	w.patch("/policies/shop", `{"ban":{"denials":5,"for":"1h"},"max_wait":"2s","max_waiting":20}`).is(http.StatusOK)
	a := w.patch("/policies/shop", `{"ban":{"factor":1.5}}`).is(http.StatusOK) // the other fields stay
	a.has("effective.ban.denials=5", "effective.ban.factor=1.5", "effective.max_waiting=20")
}

// TestCandidateSaysWhatBecomesOfRequests: the settings for requests over the limits are tried
// together with the limits, and take effect with them. A criticality is not tried. Values that the
// candidate does not set stay.
func TestCandidateSaysWhatBecomesOfRequests(t *testing.T) {
	for name, tc := range map[string]struct{ candidate, live, before, below string }{
		"client":  {"/candidates/shop", "/policies/shop", `{"criticality":"sheddable"}`, ""},
		"default": {"/candidates/_default", "/settings", `{"default":{"criticality":"sheddable"}}`, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var live answer
			at := func(path ...any) any {
				if tc.below != "" {
					path = append([]any{tc.below}, path...)
				}
				return live.at(path...)
			}
			promote := func() { live = w.change("POST", tc.candidate+"/promote", "").is(http.StatusOK) }
			w.patch(tc.live, tc.before).is(http.StatusOK)
			body := `{"client":[{"requests":3}],"ban":{"denials":2,"for":"10m"},"max_wait":"2s","max_waiting":4,"over_limit":"deny"}`
			since := w.put(tc.candidate, body).is(http.StatusOK).at("since")
			w.clock.Advance(1e9)
			check.Equal(t, "since, after the same again", w.put(tc.candidate, body).is(http.StatusOK).at("since"), since)
			check.Equal(t, "since, after another ban", w.patch(tc.candidate, `{"ban":{"denials":3}}`).is(http.StatusOK).at("since") != since, true)
			promote()
			check.Equal(t, "ban in force", at("ban", "denials"), any(3.0))
			check.Equal(t, "its length", at("ban", "for"), any("10m"))
			check.Equal(t, "max_wait in force", at("max_wait"), any("2s"))
			check.Equal(t, "max_waiting in force", at("max_waiting"), any(4.0))
			check.Equal(t, "over_limit in force", at("over_limit"), any("deny"))
			check.Equal(t, "criticality in force", at("criticality"), any("sheddable"))

			since = w.put(tc.candidate, `{"client":[{"requests":3}]}`).is(http.StatusOK).at("since")
			w.clock.Advance(1e9)
			check.Equal(t, "since, after a criticality", w.patch(tc.candidate, `{"criticality":"critical"}`).is(http.StatusOK).at("since"), since)
			w.get(tc.live)
			check.Equal(t, "criticality while it is tried", at("criticality"), any("sheddable"))
			promote()
			check.Equal(t, "criticality in force", at("criticality"), any("critical"))
		})
	}
}
