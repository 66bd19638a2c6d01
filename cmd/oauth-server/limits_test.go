package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/ratelimit"
)

func TestParseLimit(t *testing.T) {
	tests := []struct {
		spec string
		want adminapi.Limit
		says string
	}{
		{"10/60s", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s"}, ""},
		{"10/1m", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "1m"}, ""},
		{"2/1s", adminapi.Limit{Name: "per-second", Requests: 2, Window: "1s"}, ""},
		{"5/90s", adminapi.Limit{Name: "per-90s", Requests: 5, Window: "90s"}, ""},
		{
			"100/24h,name=daily,frames=24,algorithm=sliding,soft=0.5",
			adminapi.Limit{Name: "daily", Requests: 100, Window: "24h", Frames: 24, Algorithm: "sliding", SoftRatio: 0.5},
			"",
		},
		{"10/60s,on_outage=deny", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", OnOutage: "deny"}, ""},
		{"10/60s,strict", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", Strict: true}, ""},
		{"10/60s,strict,lease_wait=100ms", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", Strict: true, LeaseWait: "100ms"}, ""},
		{"10/60s,strict,algorithm=weighted,frames=1", adminapi.Limit{}, `algorithm: "weighted" can admit more`},
		{"10/60s,strict,on_outage=share", adminapi.Limit{}, "on_outage: "},
		{"10/60s,strict,lease_wait=6s", adminapi.Limit{}, "lease_wait: 6s is not"},
		{"10/60s,strict,lease_wait=long", adminapi.Limit{}, `lease_wait: "long" is not a duration`},
		{"10/60s,lease_wait=1s", adminapi.Limit{}, "lease_wait: only a strict limit"},
		{"10/60s,grants=password+refresh_token", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", Grants: ratelimit.GrantPassword | ratelimit.GrantRefresh}, ""},
		{"10/60s,grants=", adminapi.Limit{}, `grants[0]: "" is none of authorization_code, refresh_token, password`},
		{"10/60s,grants=refresh", adminapi.Limit{}, `grants[0]: "refresh" is none of`},
		{"10/60s,grants=client_credentials", adminapi.Limit{}, "grants[0]: \"client_credentials\" has no user"},
		{"10/60s,grants=password+password", adminapi.Limit{}, `grants[1]: "password" is there twice`},
		{"10/60s,strict=yes", adminapi.Limit{}, "strict: takes no value"},
		{"-5/0s", adminapi.Limit{}, "requests: -5 is not between 1 and"},
		{"5/0s", adminapi.Limit{}, "window: 0s is not above 0"},
		{"5/x y", adminapi.Limit{}, "window: \"x y\" is not a duration"},
		{"5/60s,name=a b", adminapi.Limit{}, "name: "},
		{"5/60s,frames=7", adminapi.Limit{}, "frames: 7 frames do not divide"},
		{"5/60s,soft=2", adminapi.Limit{}, "soft_ratio: 2 is not"},
		{"5/60s,algorithm=fixd", adminapi.Limit{}, "algorithm: "},
		{"5/60s,on_outage=never", adminapi.Limit{}, "on_outage: "},
		{"10", adminapi.Limit{}, "REQUESTS/WINDOW"},
		{"ten/60s", adminapi.Limit{}, `"ten" is not a number`},
		{"10/60", adminapi.Limit{}, "with its unit"},
		{"10/60s,burst=5", adminapi.Limit{}, `unknown option "burst"`},
		{"10/60s,frames=many", adminapi.Limit{}, `frames: "many"`},
		{"10/60s,frames=0", adminapi.Limit{}, "at least 1"},
		{"10/60s,soft=0", adminapi.Limit{}, "more than 0"},
		{"10/60s,frames", adminapi.Limit{}, `"frames" is not`},
		{"10/60s,outage=deny", adminapi.Limit{}, "on_outage, strict, lease_wait and grants"},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			got, err := parseLimit(tt.spec)
			switch {
			case tt.says == "" && (err != nil || got != tt.want):
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("error %v does not say %q", err, tt.says)
			}
		})
	}
}

// TestLimitsAreShownAsTheyAreGiven: what is printed is a spec that reads back
// as the same limit.
func TestLimitsAreShownAsTheyAreGiven(t *testing.T) {
	for _, spec := range []string{
		"10/60s", "24/24h,frames=24", "5/90s,name=burst", "24/24h,name=daily,frames=24", "5/1s,algorithm=fixed", "5/1s,soft=0.5",
		"10/60s,on_outage=deny", "10/60s,on_outage=memory", "10/60s,frames=6,soft=0.9,on_outage=deny",
		"10/10m,strict", "10/60s,name=contract,frames=6,strict,lease_wait=100ms", "10/60s,frames=1,strict",
		"10/10m,grants=refresh_token", "10/60s,strict,grants=authorization_code+password",
	} {
		t.Run(spec, func(t *testing.T) {
			l, err := parseLimit(spec)
			if got := showLimits([]adminapi.Limit{l}); got != spec || err != nil {
				t.Errorf("shown as %s, %v", got, err)
			}
		})
	}
	usual := adminapi.Limit{Name: "per-minute", Requests: 1, Window: "60s", Frames: 1, Algorithm: "sliding", SoftRatio: 0.8, OnOutage: "share"}
	if got := showLimits([]adminapi.Limit{usual}); got != "1/60s" {
		t.Errorf("the usual is not left out: %s", got)
	}
	strictly := ratelimit.NewLimit("per-7s", 1, 7*time.Second)
	strictly.MakeStrict()
	if got := showLimits([]adminapi.Limit{adminapi.ShowLimit(strictly)}); got != "1/7s,strict" {
		t.Errorf("the usual of a strict limit is not left out: %s", got)
	}
}

func TestNullPatch(t *testing.T) {
	got, err := nullPatch([]string{"mode", "user", "hide-headers"}, false)
	if diff := cmp.Diff(map[string]any{"mode": nil, "user": nil, "hide_headers": nil}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	got, err = nullPatch([]string{"mode", "canary", "user", "hide-headers"}, true)
	want := map[string]any{"mode": nil, "canary_percent": nil, "default": map[string]any{"user": nil, "hide_headers": nil}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, settings := range []bool{true, false} {
		if _, err := nullPatch([]string{"limits"}, settings); err == nil {
			t.Error("an unknown field is taken")
		}
	}
}

func TestDifferences(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{`null`, `{"client_id":"shop","trusted":true,"hide_headers":false}`, "trusted yes"},
		{`{"mode":"dry_run"}`, `{"mode":"enforce"}`, "mode dry_run -> enforce"},
		{`{"mode":"off","note":"x"}`, `{}`, "no mode (was off); no note (was x)"},
		{`{"default":{"user":[{"requests":100,"window":"60s"}]}}`, `{"default":{"user":[{"requests":5,"window":"60s"},{"requests":1,"window":"1s"}]}}`, "default.user 100/60s -> 5/60s 1/1s"},
		{`{"user":[{"requests":5,"window":"60s"}]}`, `{"user":[{"requests":5,"window":"60s","frames":1,"algorithm":"sliding","soft_ratio":0.8,"on_outage":"share"}]}`, "-"},
		{`{"user":[{"requests":5,"window":"60s","on_outage":"share"}]}`, `{"user":[{"requests":5,"window":"60s","on_outage":"deny"}]}`, "user 5/60s -> 5/60s,on_outage=deny"},
		{`{"user":[{"requests":5,"window":"60s","name":"per-minute"}]}`, `{"user":[{"requests":5,"window":"60s","name":"burst"}]}`, "user 5/60s -> 5/60s,name=burst"},
		{`{"user":[{"requests":5,"window":"60s","strict":true}]}`, `{"user":[{"requests":5,"window":"60s","frames":60,"algorithm":"sliding","soft_ratio":0.8,"on_outage":"deny","strict":true,"lease_wait":"50ms"}]}`, "-"},
		{`{"user":[{"requests":5,"window":"60s"}]}`, `{"user":[{"requests":5,"window":"60s","strict":true,"lease_wait":"100ms"}]}`, "user 5/60s -> 5/60s,strict,lease_wait=100ms"},
		{`{"user":[{"requests":5,"window":"60s"}]}`, `{"user":[{"requests":5,"window":"60s","grants":["password"]}]}`, "user 5/60s -> 5/60s,grants=password"},
		{`{"user":[{"requests":5,"grants":["password","refresh_token"]}]}`, `{"user":[{"requests":5,"grants":["refresh_token","password"]}]}`, "-"},
		{`null`, `{"user":[{"requests":5,"window":"1m30s","name":"per-90s"}]}`, "user 5/1m30s"},
		{`{"user":[1,"a"]}`, `{"user":[2]}`, "user 1 a -> 2"},
		{`{"canary_percent":100}`, `{"canary_percent":100}`, "-"},
		{`null`, `{"username":null}`, "-"},
		{`null`, `{"name":"gold","user":[{"requests":5,"window":"60s"}]}`, "user 5/60s"},
		{`{"trusted":false,"hide_headers":true}`, `null`, "no hide_headers (was yes)"},
	} {
		if got := differences(json.RawMessage(tt.before), json.RawMessage(tt.after)); got != tt.want {
			t.Errorf("%s to %s: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}

func TestLimitsCommandLine(t *testing.T) {
	silent := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(silent.Close)
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }))
	t.Cleanup(empty.Close)
	me := " --client-id ops --client-secret x --server " + silent.URL
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"limits list", 2, "an admin client is needed"},
		{"limits list --token x --server ftp://x", 2, "--server:"},
		{"limits list --token x --server http://192.0.2.1:9097", 2, "in clear"},
		{"limits list" + me, 1, "not the admin address"},
		{"limits list --token x --server http://127.0.0.1:1", 1, "no server listens on 127.0.0.1:1: start it with oauth-server serve, or give the admin address"},
		{"health --url http://127.0.0.1:1/healthz", 1, "no server listens on 127.0.0.1:1: start it with oauth-server serve, or give the address of another one with --url"},
		{"token --issuer http://127.0.0.1:1 --grant client_credentials --client-id x --client-secret y --no-cache", 1, "with --issuer or OAUTH_ISSUER"},
		{"limits list --sort colour --token x --issuer http://127.0.0.1 --server " + empty.URL, 2, `--sort: "colour" is none of name, requests, denied, usage`},
		{"limits list --client-secret x --client-secret-stdin", 2, "contradict"},
		{"limits dry-run" + me, 2, "on|off is missing"},
		{"limits dry-run maybe" + me, 2, `"maybe" is neither on nor off`},
		{"limits dry-run on a b" + me, 2, `unexpected argument "b"`},
		{"limits trust" + me, 2, "CLIENT is missing"},
		{"limits trust shop perhaps" + me, 2, "neither on nor off"},
		{"limits canary lots" + me, 2, "such as 5%"},
		{"limits set" + me, 2, "nothing to set"},
		{"limits set shop --limit 5" + me, 2, "such as 10/60s"},
		{"limits set shop --limit 5/1s --user 5/1s" + me, 2, "--limit and --user contradict"},
		{"limits set shop --requests 5" + me, 2, "belong together"},
		{"limits set shop --requests five --window 60s" + me, 2, `--requests/--window.requests: "five" is not a number`},
		{"limits set shop --requests 5 --user 1/1s" + me, 2, "--requests/--window and --user contradict"},
		{"limits set shop --requests 5 --preset okta" + me, 2, "--preset contradicts"},
		{"limits set shop --preset okta --for-user ada" + me, 2, "--preset is about the client"},
		{"limits set --preset okta --for-user ada" + me, 2, "needs a CLIENT"},
		{"limits unset shop --field colour" + me, 2, "none of user"},
		{"limits set shop --client 100/60s --for=" + me, 2, "limits set: --for is empty"},
		{"limits set shop --requests= --window= --user 5/1s" + me, 2, "is empty"},
		{"limits unset shop --for-user ada --tier gold" + me, 2, "--tier is about the client"},
		{"limits top --denied --waste" + me, 2, "give one of them"},
		{"limits unset shop --field=" + me, 2, "--field is empty: give its value, or leave the flag out"},
		{"limits reset shop --user=" + me, 2, "--user is empty"},
		{"limits unset --tier gold --for=" + me, 2, "limits unset: --for is empty"},
		{"limits candidate set shop" + me, 2, "no limits to try"},
		{"limits candidate shw" + me, 2, `unknown command "shw"`},
		{"limits reset" + me, 2, "CLIENT is missing"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			runFails(t, tt.status, tt.says, "", strings.Fields(tt.args)...)
		})
	}
}
