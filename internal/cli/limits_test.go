package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
