package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

func registeredElsewhere(o *admin.Options) { o.ClientsElsewhere = true }

// newGateway is an instance with clients registered elsewhere, in dry-run with 5 requests a minute.
// The client in-force is enforced.
func newGateway(t *testing.T) *instance {
	t.Helper()
	return newGatewayOn(t, "i-1", openStore(t))
}

func newGatewayOn(t *testing.T, name string, store *shared) *instance {
	t.Helper()
	base := file()
	base.Mode, base.Default.Client = ratelimit.DryRun, perMinute(5)
	base.Default.User = perMinute(5)
	base.Clients["in-force"] = ratelimit.Policy{Mode: ratelimit.Enforce, Client: perMinute(100)}
	return newInstance(t, name, store, base, registeredElsewhere)
}

// TestEffectOnClientsElsewhere: each kind of change that enforces more shows the clients that it
// hits, although they are not registered.
func TestEffectOnClientsElsewhere(t *testing.T) {
	const batch, forced = "batch (15 requests)", "in-force (at least 1)"
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"dry-run off", "PATCH", "/settings", `{"mode":"enforce"}`, batch},
		{"dry-run off for a while", "PATCH", "/settings?for=1h", `{"mode":"enforce"}`, batch},
		{"dry-run off for a client", "PATCH", "/policies/batch", `{"mode":"enforce"}`, batch},
		{"a lower limit", "PUT", "/policies/in-force", `{"mode":"enforce","client":[{"requests":10}]}`, forced},
		{"trust off", "PATCH", "/policies/trusted", `{"trusted":false,"mode":"enforce"}`, "trusted (it is trusted"},
		{"another tier", "PATCH", "/policies/in-tier", `{"tier":"bronze"}`, "in-tier (at least 1)"},
		{"the limits of a tier", "PATCH", "/tiers/gold", `{"client":[{"requests":10}]}`, "in-tier (at least 1)"},
		{"a candidate", "POST", "/candidates/in-force/promote", "", "in-force (12 requests)"},
		{"limits of a user", "PUT", "/policies/in-force/users/ada", `{"user":[{"requests":1}]}`, "in-force (requests per user"},
		{"fewer for all", "PATCH", "/settings", `{"mode":"enforce","default":{"client":[{"requests":3}]}}`, "batch (at least 1)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newGateway(t)
			w.put("/tiers/gold", `{"mode":"enforce","client":[{"requests":100}]}`).is(http.StatusOK)
			w.put("/tiers/bronze", `{"mode":"enforce","client":[{"requests":3}]}`).is(http.StatusOK)
			w.put("/policies/in-tier", `{"tier":"gold"}`).is(http.StatusOK)
			w.put("/policies/trusted", `{"trusted":true}`).is(http.StatusOK)
			w.put("/candidates/in-force", `{"client":[{"requests":8}]}`).is(http.StatusOK)
			for _, id := range []string{"batch", "in-force", "in-tier", "trusted"} {
				w.ask(id, "", 20)
			}
			w.ask("in-force", "ada", 2)
			path, query, _ := strings.Cut(tt.path, "?")
			a := w.change(tt.method, path+"?validate=true&"+query, tt.body).is(http.StatusOK).has("effect.widens=true")
			if summary := a.at("effect", "summary").(string); !strings.Contains(summary, tt.want) {
				t.Errorf("%q does not say %q", summary, tt.want)
			}
		})
	}
}

// TestEffectOfManyChangesElsewhere: apply, undo, and a change that stops trusting a client.
func TestEffectOfManyChangesElsewhere(t *testing.T) {
	w := newGateway(t)
	w.put("/policies/trusted", `{"trusted":true,"mode":"enforce"}`).is(http.StatusOK)
	w.patch("/policies/night", `{"mode":"enforce"}`).is(http.StatusOK)
	w.patch("/policies/night", `{"mode":"dry_run"}`).is(http.StatusOK)
	w.ask("batch", "", 20)
	w.ask("night", "", 20)
	w.ask("trusted", "", 20)
	for name, a := range map[string]answer{
		"batch (15 requests)": w.changes("?validate=true", `{"changes":[{"target":"settings","value":{"mode":"enforce"}}]}`),
		"night (15 requests)": w.undo("3/undo?validate=true"),
		"trusted (it":         w.changes("?validate=true", `{"changes":[{"target":"policies/trusted","value":null},{"target":"settings","value":{"mode":"enforce"}}]}`),
	} {
		a.is(http.StatusOK).has("effect.widens=true")
		if summary := a.at("effect", "summary").(string); !strings.Contains(summary, name) {
			t.Errorf("%q does not say %q", summary, name)
		}
	}
}

// TestEnforcingWithoutActivity: if clients are registered elsewhere, any name may appear, so a
// change widens even before the first request.
func TestEnforcingWithoutActivity(t *testing.T) {
	for _, tt := range []struct {
		name, before, change string
		widens               bool
	}{
		{"dry-run off", `{}`, `{"mode":"enforce"}`, true},
		{"dry-run off for no share", `{}`, `{"mode":"enforce","canary_percent":0}`, false},
		{"a share in dry-run", `{}`, `{"canary_percent":5}`, false},
		{"a larger share", `{"mode":"enforce","canary_percent":5}`, `{"canary_percent":5.01}`, true},
		{"the same share", `{"mode":"enforce","canary_percent":5}`, `{"canary_percent":5,"note":"x"}`, false},
		{"a smaller share", `{"mode":"enforce","canary_percent":5}`, `{"canary_percent":4}`, false},
		{"a smaller share with lower limits", `{"mode":"enforce","canary_percent":5}`, `{"canary_percent":4,"default":{"client":[{"requests":1}]}}`, true},
		{"lower limits", `{"mode":"enforce"}`, `{"default":{"client":[{"requests":1}]}}`, true},
		{"higher limits", `{"mode":"enforce"}`, `{"default":{"client":[{"requests":9}]}}`, false},
		{"lower limits in dry-run", `{}`, `{"default":{"client":[{"requests":1}]}}`, false},
		{"dry-run on", `{"mode":"enforce"}`, `{"mode":"dry_run"}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newGateway(t)
			w.patch("/settings", tt.before).is(http.StatusOK)
			a := w.change("PATCH", "/settings?validate=true", tt.change).is(http.StatusOK)
			check.Equal(t, "widens", a.at("effect", "widens"), any(tt.widens))
			want := notWidened
			if tt.widens {
				want = wouldDeny + "no request of 0 active clients." + young
			}
			check.Equal(t, "summary", a.at("effect", "summary"), any(want))
		})
	}
	w := newGateway(t)
	check.Equal(t, "a client's own", w.summary("PUT", "/policies/new", `{"mode":"enforce"}`), wouldDeny+"no request of 0 active clients."+young)
}

// TestEffectInDryRun: limits that stay in dry-run deny nothing, and the summary says how much they
// would.
func TestEffectInDryRun(t *testing.T) {
	w := newGateway(t)
	w.ask("batch", "", 20)
	w.ask("shop", "", 3)
	const then = notWidened + " In the last 10 minutes, enforcing its limits would have denied "
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"those that it has, of its own", "PUT", "/policies/batch", `{"client":[{"name":"own","requests":5}]}`, then + "requests of 1 of 2 active clients: batch (at least 1)."},
		{"higher", "PUT", "/policies/batch", `{"client":[{"requests":500}]}`, then + "no request of 2 active clients. It is unknown for 1: batch (no counter shows 500 requests in 60s; try a candidate first)."},
		{"lower for all", "PATCH", "/settings", `{"default":{"client":[{"requests":2}]}}`, then + "requests of 2 of 2 active clients: batch (at least 1), shop (at least 1)."},
		{"of another", "PUT", "/policies/app", `{"client":[{"requests":2}]}`, ""},
		{"nothing", "PATCH", "/policies/batch", `{"note":"x"}`, ""},
		{"off", "PATCH", "/policies/batch", `{"mode":"off"}`, ""},
	} {
		want := tt.want + young
		if tt.want == "" {
			want = notWidened
		}
		check.Equal(t, tt.name, w.summary(tt.method, tt.path, tt.body), want)
	}
}

// TestEffectAtTheEndOfAnother: the preview includes a change that enforces more only after a
// temporary one ends.
func TestEffectAtTheEndOfAnother(t *testing.T) {
	const later = "Once temporary values end, this change denies more requests. " + wouldDeny
	for _, tt := range []struct{ name, before, path, change, want string }{
		{"a lower limit in a short dry-run", `{"mode":"dry_run"}`, "/policies/batch", `{"client":[{"requests":10}]}`, later + "requests of 1 of 2 active clients: batch (at least 1)." + young},
		{"and for all, which makes the dry-run last", `{"mode":"dry_run"}`, "/settings", `{"default":{"client":[{"requests":10}]}}`, ""},
		{"a higher limit", `{"mode":"dry_run"}`, "/policies/batch", `{"client":[{"requests":99}]}`, ""},
		{"dry-run for longer", `{"mode":"dry_run"}`, "/settings?for=2h", `{"mode":"dry_run"}`, notWidened},
		{"that lasts", `{"mode":"dry_run"}`, "/settings", `{"mode":"dry_run"}`, notWidened},
		{"a short enforcing that lasts", `{"default":{"client":[{"requests":10}]}}`, "/settings", `{"default":{"client":[{"requests":10}]}}`, later + "requests of 2 of 2 active clients: batch (10 requests), shop (10 requests)." + young},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.patch("/settings", `{"default":{"client":[{"requests":50}]}}`).is(http.StatusOK)
			w.patch("/settings?for=1h", tt.before).is(http.StatusOK)
			w.ask("batch", "", 20)
			w.ask("shop", "", 20)
			check.OK(t, w.store.CreateClient(t.Context(), confidential("batch", func(*clientcfg.Client) {}), clientcfg.Event{}))
			path, query, _ := strings.Cut(tt.path, "?")
			a := w.change("PATCH", path+"?validate=true&"+query, tt.change).is(http.StatusOK)
			summary := a.at("effect", "summary").(string)
			check.Equal(t, "widens", a.at("effect", "widens"), any(strings.HasPrefix(tt.want, later)))
			if tt.want != "" && summary != tt.want {
				t.Errorf("got %s\nwant %s", summary, tt.want)
			}
		})
	}
}

// TestEffectOfManyNames: after a flood of names the preview is still short, and starts with the
// client that is hit most.
func TestEffectOfManyNames(t *testing.T) {
	w := newGateway(t)
	const names = 2000
	for i := range names {
		w.ask(fmt.Sprintf("name-%04d-%s", i, strings.Repeat("ä", 120)), "", 6)
	}
	w.ask("batch", "", 20)
	a := w.change("PATCH", "/settings?validate=true", `{"mode":"enforce"}`).is(http.StatusOK)
	check.Equal(t, "hit", a.at("effect", "hit_total"), any(float64(names+1)))
	hit := a.at("effect", "hit").([]any)
	check.Equal(t, "listed", len(hit), 1000)
	a.has("effect.hit.0.client_id=batch")
	summary := a.at("effect", "summary").(string)
	if !strings.HasPrefix(summary, wouldDeny+"requests of 2001 of 2001 active clients: batch (15 requests), name-") || !strings.Contains(summary, " and 1991 more.") || len(summary) > 1100 {
		t.Error(len(summary), summary)
	}
}

// TestEffectCountsInstancesElsewhere: requests at other instances of the gateway count too.
func TestEffectCountsInstancesElsewhere(t *testing.T) {
	a := newGateway(t)
	b := newGatewayOn(t, "i-2", a.store)
	b.ask("batch", "", 7)
	b.publish()
	a.ask("batch", "", 8)
	a.ask("shop", "", 6)
	check.Equal(t, "both", a.summary("PATCH", "/settings", `{"mode":"enforce"}`), wouldDeny+"requests of 2 of 2 active clients: batch (5 requests), shop (1 request)."+young)
}

// TestEffectOnADeletedClient: its requests are evaluated as long as they are recorded.
func TestEffectOnADeletedClient(t *testing.T) {
	w := newWorld(t)
	w.patch("/settings", `{"mode":"dry_run","default":{"client":[{"requests":5}]}}`).is(http.StatusOK)
	w.put("/policies/shop", `{"note":"x"}`).is(http.StatusOK)
	w.ask("shop", "", 20)
	for _, id := range []string{"shop", "app", odd} {
		check.OK(t, w.store.DeleteClient(t.Context(), id, clientcfg.Event{}))
	}
	check.OK(t, w.clients.Renew(t.Context(), 0))
	want := wouldDeny + "requests of 1 of 1 active client: shop (15 requests)." + young
	check.Equal(t, "all", w.summary("PATCH", "/settings", `{"mode":"enforce"}`), want)
	check.Equal(t, "its own", w.summary("PATCH", "/policies/shop", `{"mode":"enforce"}`), want)
}

// TestIneffectiveElsewhere: a setting that a gateway ignores gets a warning when it is added.
func TestIneffectiveElsewhere(t *testing.T) {
	w := newGateway(t)
	w.ask("partner", "", 1)
	w.ask("batch", "", 1)
	w.put("/policies/batch", `{"over_limit":"reuse","ban":{"denials":3}}`).is(http.StatusOK)
	const reuse, ban = "over_limit: reuse has no effect at a gateway, which keeps no tokens.", "A ban has no effect at a gateway, which cannot check who sent a request."
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"last token", "PUT", "/policies/partner", `{"over_limit":"reuse"}`, "[" + reuse + "]"},
		{"ban", "PUT", "/policies/partner", `{"ban":{"denials":3}}`, "[" + ban + "]"},
		{"both for all", "PATCH", "/settings", `{"default":{"over_limit":"reuse","ban":{"denials":3}}}`, "[" + reuse + " " + ban + "]"},
		{"candidate", "PUT", "/candidates/partner", `{"client":[{"requests":5}],"ban":{"denials":3}}`, "[" + ban + "]"},
		{"candidate for all", "PUT", "/candidates/_default", `{"client":[{"requests":5}],"over_limit":"reuse"}`, "[" + reuse + "]"},
		{"no ban", "PUT", "/policies/partner", `{"ban":"off","over_limit":"deny"}`, "<nil>"},
		{"set before", "PATCH", "/policies/batch", `{"note":"x"}`, "<nil>"},
		{"registered here", "PUT", "/policies/ops", `{"ban":{"denials":3}}`, "<nil>"},
	} {
		check.Equal(t, tt.name, fmt.Sprint(w.change(tt.method, tt.path+"?validate=true", tt.body).is(http.StatusOK).at("effect", "warnings")), tt.want)
	}
}

// TestMisspeltClientElsewhere: an unknown name gets a warning with the nearest known name.
func TestMisspeltClientElsewhere(t *testing.T) {
	w := newGateway(t)
	w.put("/policies/nightly", `{"note":"x"}`).is(http.StatusOK)
	w.put("/policies/partner/users/ada", `{"user":[{"requests":1}]}`).is(http.StatusOK)
	w.ask("batch", "", 1)
	w.ask("Billing", "", 1)
	const nothing = ` is unknown: it had no requests in the last 10 minutes and no settings`
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"near one with requests", "PUT", "/policies/btach", `{"trusted":true}`, `[Client "btach"` + nothing + `; did you mean batch?]`},
		{"in other case", "PATCH", "/policies/billing", `{"mode":"enforce"}`, `[Client "billing"` + nothing + `; did you mean Billing?]`},
		{"near one with a policy", "PUT", "/policies/nightli", `{}`, `[Client "nightli"` + nothing + `; did you mean nightly?]`},
		{"near none, its candidate", "PUT", "/candidates/other", `{"client":[{}]}`, `[Client "other"` + nothing + `.]`},
		{"of a user", "PUT", "/policies/partnr/users/ada", `{"user":[{}]}`, `[Client "partnr"` + nothing + `; did you mean partner?]`},
		{"with requests", "PUT", "/policies/batch", `{"trusted":true}`, "<nil>"},
		{"with a policy", "PATCH", "/policies/nightly", `{"note":"y"}`, "<nil>"},
		{"with limits of a user", "PUT", "/policies/partner", `{"note":"y"}`, "<nil>"},
		{"registered here", "PUT", "/policies/ops", `{"trusted":true}`, "<nil>"},
		{"of all", "PATCH", "/settings", `{"note":"y"}`, "<nil>"},
	} {
		check.Equal(t, tt.name, fmt.Sprint(w.change(tt.method, tt.path+"?validate=true", tt.body).is(http.StatusOK).at("effect", "warnings")), tt.want)
	}
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf(`{"target":"policies/new-%02d","value":{"trusted":true}}`, i))
	}
	warnings := w.changes("?validate=true", `{"changes":[`+strings.Join(many, ",")+`]}`).is(http.StatusOK).at("effect", "warnings").([]any)
	check.Equal(t, "of many", len(warnings), 11)
	check.Equal(t, "the rest", warnings[10], any("15 more clients are unknown."))
	w.clock.Advance(11 * time.Minute)
	w.change("PUT", "/policies/batch?validate=true", `{}`).is(http.StatusOK).has("effect.warnings.#=1")
}
