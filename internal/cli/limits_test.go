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
