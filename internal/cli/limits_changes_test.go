package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// asOperator are the flags for a server that takes any token.
func asOperator(server string) []string {
	return []string{"--token", "x", "--issuer", "http://127.0.0.1", "--server", server}
}

// operatorAPI is an API that accepts every change and keeps the last one as "PATH?QUERY BODY".
func operatorAPI(t *testing.T) (flags []string, last *string) {
	t.Helper()
	last = new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch query := r.URL.Query(); {
		case strings.HasSuffix(r.URL.Path, "/clients"):
			_, _ = w.Write([]byte(`{"clients":[{"client_id":"shop"},{"client_id":"report"}]}`))
			return
		case r.Method != http.MethodGet && !query.Has("validate"):
			*last = strings.TrimPrefix(r.URL.Path, "/admin/v1") + strings.TrimSuffix("?"+query.Encode(), "?") + " " + string(body)
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	return asOperator(server.URL), last
}

// TestLimitsAreSent: what a command line changes, and the sentence about it.
func TestLimitsAreSent(t *testing.T) {
	flags, last := operatorAPI(t)
	for _, tt := range []struct{ args, sent, says string }{
		{"dry-run on", `/settings {"mode":"dry_run"}`, "Dry-run is now on"},
		{"dry-run off", `/settings {"mode":"enforce"}`, "Dry-run is now off"},
		{"dry-run shop on", `/policies/shop {"mode":"dry_run"}`, "Dry-run is now on for shop"},
		{"dry-run shop off", `/policies/shop {"mode":"enforce"}`, "Dry-run is now off for shop"},
		{"dry-run on off", `/policies/on {"mode":"enforce"}`, "Dry-run is now off for on"},
		{"dry-run off on", `/policies/off {"mode":"dry_run"}`, "Dry-run is now on for off"},
		{"dry-run on on", `/policies/on {"mode":"dry_run"}`, "Dry-run is now on for on"},
		{"trust shop on", `/policies/shop {"ban":null,"max_wait":null,"max_waiting":null,"over_limit":null,"trusted":true}`, "The client shop is now trusted"},
		{"trust shop off", `/policies/shop {"trusted":false}`, "The client shop is no longer trusted"},
		{"trust shop", `/policies/shop {"ban":null,"max_wait":null,"max_waiting":null,"over_limit":null,"trusted":true}`, "The client shop is now trusted"},
		{"trust off on", `/policies/off {"ban":null,"max_wait":null,"max_waiting":null,"over_limit":null,"trusted":true}`, "The client off is now trusted"},
		{"trust on off", `/policies/on {"trusted":false}`, "The client on is no longer trusted"},
		{"set shop --criticality critical_plus", `/policies/shop {"criticality":"critical_plus"}`, ""},
		{"set --criticality sheddable", `/settings {"default":{"criticality":"sheddable"}}`, ""},
		{"set --tier gold --criticality sheddable_plus", `/tiers/gold {"criticality":"sheddable_plus"}`, ""},
		{"unset shop --field criticality", `/policies/shop {"criticality":null}`, ""},
		{"unset --field criticality", `/settings {"default":{"criticality":null}}`, ""},
		{"set shop --max-wait 2s --max-waiting 20", `/policies/shop {"max_wait":"2s","max_waiting":20}`, ""},
		{"set shop --max-wait 1500ms", `/policies/shop {"max_wait":"1.5s"}`, ""},
		{"set shop --max-wait 0", `/policies/shop {"max_wait":"0s","max_waiting":null}`, ""},
		{"set --max-wait 2s", `/settings {"default":{"max_wait":"2s"}}`, ""},
		{"set --tier gold --max-wait 2s --max-waiting 3", `/tiers/gold {"max_wait":"2s","max_waiting":3}`, ""},
		{"unset shop --field max-wait", `/policies/shop {"max_wait":null,"max_waiting":null}`, ""},
		{"unset shop --field max-waiting", `/policies/shop {"max_waiting":null}`, ""},
		{"unset --field max-wait", `/settings {"default":{"max_wait":null,"max_waiting":null}}`, ""},
		{"set --limit 5/60s", "", "The default limits are now set"},
		{"set shop --note x", "", "The policy of shop is now set"},
		{"unset", "", "The settings now come from the configuration file"},
		{"unset shop", "", "The policy of shop now comes from the configuration file"},
		{"unset --field canary,mode", "", "The settings no longer set canary, mode"},
		{"unset shop --field mode", "", "The policy of shop no longer sets mode"},
		{"canary 5%", "", "Limits are now enforced on 5% of the clients"},
		{"candidate set shop --limit 5/60s", "", "The candidate for shop is now tried beside the live limits"},
		{"candidate promote", "", "The candidate for the default limits is now live"},
		{"unset shop --candidate", "", "The candidate for shop is no longer tried"},
		{"reset shop", "", "The counts of shop are now forgotten"},
		{"reset shop --user ada", "", "The counts of ada at shop are now forgotten"},
		{"unban shop", "/bans/shop ", "The ban of shop is now lifted"},
		{"unban shop --user ada --forget --reason fixed", "/bans/shop?forget=true&reason=fixed&username=ada ", "The ban of ada at shop is now lifted"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			*last = ""
			stdout, stderr, status := run(t, "", append(strings.Fields("limits "+tt.args), flags...)...)
			check.Equal(t, "status and errors: "+stderr, status, command.ExitOK)
			if tt.sent != "" {
				check.Equal(t, "change", *last, tt.sent)
			}
			if tt.says != "" {
				check.Equal(t, "output", stdout, tt.says+"; in effect on all instances within two seconds.\n")
			}
		})
	}
}

// TestLimitsAreRefused: what is wrong with a command line is said before the server is asked.
func TestLimitsAreRefused(t *testing.T) {
	flags, asked := readAPI(t)
	for _, tt := range []struct{ args, says string }{
		{"set --tier gold", "nothing to set"},
		{"set --tier gold --limit 5", "such as 10/60s"},
		{"get shop --tier gold", "CLIENT and --tier cannot be used together"},
		{"unset shop --tier gold", "CLIENT and --tier cannot be used together"},
		{"set shop --mode off", "--mode is only for a tier"},
		{"set --mode off", "--mode is only for a tier"},
		{"set --for-user ada --user 1/60s", "--for-user needs a CLIENT"},
		{"set shop --for-user= --user 1/60s", "the name of a user"},
		{"set shop --for-user ada", "nothing to set: give --user"},
		{"set shop --for-user ada --limit 1/60s", "--limit applies to the whole client"},
		{"set shop --for-user ada --client 1/60s", "--client applies to the whole client"},
		{"set shop --for-user ada --over-limit reuse", "--over-limit applies to the whole client"},
		{"set shop --over-limit wait", `--over-limit: "wait" is not one of deny, reuse`},
		{"set --tier gold --over-limit wait", `--over-limit: "wait" is not one of deny, reuse`},
		{"candidate set shop --over-limit reuse", "no limits to try"},
		{"set shop --for-user ada --criticality critical", "--criticality applies to the whole client"},
		{"set shop --criticality high", `--criticality: "high" is not one of critical_plus, critical, sheddable_plus, sheddable`},
		{"set shop --criticality=", "--criticality is empty"},
		{"set --criticality Critical", `--criticality: "Critical" is not one of critical_plus`},
		{"set --tier gold --criticality high", `--criticality: "high" is not one of critical_plus`},
		{"candidate set shop --limit 5/60s --criticality high", `--criticality: "high" is not one of critical_plus`},
		{"candidate set shop --criticality critical", "no limits to try"},
		{"set shop", "--criticality"},
		{"set shop --for-user ada --tier gold", "--tier applies to the whole client"},
		{"unset --for-user ada", "--for-user needs a CLIENT"},
		{"unset shop --for-user ada --field user", "--field applies to the whole client"},
		{"unset --field tier", "not one of user"},
		{"set shop --for-user ada --user 1/60s --total 5/60s", "--total applies to the whole client"},
		{"set shop --total 5/60s --preset okta", "--preset cannot be used"},
		{"reset shop --user ada --total", "cannot be used together"},
		{"set shop --for-user ada --user 1/60s --source 5/60s", "--source applies to the whole client"},
		{"set shop --source 5/60s --preset okta", "--preset cannot be used"},
		{"reset shop --source 192.0.2.7 --total", "cannot be used together"},
		{"reset shop --source 192.0.2.0/24", `--source: "192.0.2.0/24" is neither an address nor`},
		{"reset shop --source nowhere", `--source: "nowhere" is neither an address nor`},
		{"set shop --limit 5/60s,grants=password --total 5/60s,grants=x", "--total[0].grants[0]: \"x\" is not one of"},
		{"set shop --user 10/60s,grants=refresh_token,password", "--user[0].grants: separate grants with +: grants=...+password"},
		{"set shop --max-wait soon", `"soon" is not a duration`},
		{"set shop --max-wait 2", `"2" is not a duration`},
		{"set --tier gold --max-waiting many", `"many" is not a whole number`},
		{"set shop --for-user ada --max-wait 2s", "--max-wait applies to the whole client"},
		{"set shop --for-user ada --max-waiting 2", "--max-waiting applies to the whole client"},
		{"candidate set shop --max-wait 2s", "no limits to try"},
		{"dry-run", "on|off is missing"},
		{"dry-run maybe", `"maybe" is neither on nor off`},
		{"dry-run on a b", `unexpected argument "b"`},
		{"trust", "CLIENT is missing"},
		{"trust shop perhaps", "neither on nor off"},
		{"canary lots", "such as 5%"},
		{"set", "nothing to set"},
		{"set shop --limit 5", "such as 10/60s"},
		{"set shop --limit 5/1s --user 5/1s", "--limit and --user cannot be used"},
		{"set shop --requests 5", "--requests needs --window"},
		{"set shop --requests five --window 60s", `--requests/--window.requests: "five" is not a number`},
		{"set shop --requests 5 --user 1/1s", "--requests/--window and --user cannot be used"},
		{"set shop --requests 5 --preset okta", "--preset cannot be used"},
		{"set shop --preset okta --for-user ada", "--preset applies to the whole client"},
		{"set --preset okta --for-user ada", "needs a CLIENT"},
		{"unset shop --field colour", "not one of user"},
		{"set shop --client 100/60s --for=", "limits set: --for is empty"},
		{"set shop --requests= --window= --user 5/1s", "is empty"},
		{"unset shop --for-user ada --tier gold", "--tier applies to the whole client"},
		{"top --denied --waste", "give one of them"},
		{"unset shop --field=", "--field is empty: give a value, or leave the flag out"},
		{"reset shop --user=", "--user is empty"},
		{"unset --tier gold --for=", "limits unset: --for is empty"},
		{"candidate set shop", "no limits to try"},
		{"candidate shw", `unknown command "shw"`},
		{"reset", "CLIENT is missing"},
		{"dry-run shop", `limits dry-run: "shop" is neither on nor off; usage: [CLIENT] on|off`},
		{"dry-run shop maybe", `limits dry-run: "maybe" is neither on nor off; usage: [CLIENT] on|off`},
		{"dry-run on shop", `limits dry-run: the client comes before the state: oauth-server limits dry-run shop on`},
		{"dry-run maybe shop", `limits dry-run: "shop" is neither on nor off; usage: [CLIENT] on|off`},
		{"trust on", `limits trust: CLIENT is missing before "on": oauth-server limits trust CLIENT on`},
		{"trust off", `limits trust: CLIENT is missing before "off": oauth-server limits trust CLIENT off`},
		{"trust on shop", `limits trust: the client comes before the state: oauth-server limits trust shop on`},
		{"trust off shop", `limits trust: the client comes before the state: oauth-server limits trust shop off`},
		{"trust shop maybe", `limits trust: "maybe" is neither on nor off; usage: CLIENT [on|off]`},
		{"set shop --ban on", `--ban: "on" is not off, denials=`},
		{"set shop --ban=", "--ban is empty"},
		{"set --ban denials=0,within=60,for=1000h,factor=0.5,max=x,forget=-1s", "--ban.denials: 0 is not between"},
		{"set --ban denials=0,within=60,for=1000h,factor=0.5,max=x,forget=-1s", "--ban.within: \"60\" is not a duration"},
		{"set --ban denials=0,within=60,for=1000h,factor=0.5,max=x,forget=-1s", "--ban.for: 1000h0m0s is not between"},
		{"set --ban denials=0,within=60,for=1000h,factor=0.5,max=x,forget=-1s", "--ban.factor: 0.5 is not between"},
		{"set --ban denials=0,within=60,for=1000h,factor=0.5,max=x,forget=-1s", "--ban.max: \"x\" is not a duration"},
		{"set --ban denials=0,within=60,for=1000h,factor=0.5,max=x,forget=-1s", "--ban.forget: -1s is not between"},
		{"set --tier gold --ban denials=many,factor=x", "--ban.denials: \"many\""},
		{"set --tier gold --ban denials=many,factor=x", "--ban.factor: \"x\""},
		{"set shop --ban for=1m,for=2m", "--ban.for: is a duplicate"},
		{"set shop --ban bans=1", `"bans=1" is not off, denials=`},
		{"set shop --for-user ada --ban off", "--ban applies to the whole client"},
		{"candidate set shop --ban off", "no limits to try"},
		{"unban", "CLIENT is missing"},
	} {
		runFails(t, command.ExitUsage, tt.says, "", append(strings.Fields("limits "+tt.args), flags...)...)
	}
	if len(*asked) > 0 {
		t.Errorf("a command line that cannot be asked for %v", *asked)
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
		{"limits list", 2, "no credentials"},
		{"limits list --token x --server ftp://x", 2, "--server:"},
		{"limits list --token x --server http://192.0.2.1:9097", 2, "unencrypted"},
		{"limits list" + me, 1, "no issuer at"},
		{"limits list --token x --server http://127.0.0.1:1", 1, "no server listens on 127.0.0.1:1: start one with oauth-server serve, or give its admin address"},
		{"health --url http://127.0.0.1:1/healthz", 1, "no server listens on 127.0.0.1:1: start one with oauth-server serve, or give its address with --url"},
		{"token --issuer http://127.0.0.1:1 --grant client_credentials --client-id x --client-secret y --no-cache", 1, "with --issuer or OAUTH_ISSUER"},
		{"limits list --sort colour --token x --issuer http://127.0.0.1 --server " + empty.URL, 2, `--sort: "colour" is not one of name, requests, denied, usage`},
		{"limits list --client-secret x --client-secret-stdin", 2, "cannot be used together"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			runFails(t, tt.status, tt.says, "", strings.Fields(tt.args)...)
		})
	}
}
