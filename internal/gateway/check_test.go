package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestCheck checks that a token path that the upstream does not have is reported at startup.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ metadata, want string }{
		"its path":      {`{"token_endpoint":"https://idp.example/realms/a/protocol/openid-connect/token"}`, ""},
		"another path":  {`{"token_endpoint":"https://idp.example/oauth2/token"}`, "level=WARN msg=\"token_path does not match"},
		"no metadata":   {"", "level=INFO msg=\"token_path not checked yet"},
		"no JSON":       {"<html>", "level=INFO msg=\"token_path not checked yet"},
		"no such field": {"{}", "level=INFO msg=\"token_path not checked yet"},
	} {
		t.Run(name, func(t *testing.T) {
			var log check.Buffer
			w := newWorld(t, 1, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
				if tc.metadata == "" {
					rw.WriteHeader(http.StatusNotFound)
				}
				_, _ = fmt.Fprint(rw, tc.metadata)
			})
			w.CheckNow(t.Context())
			if got := log.String(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("logged %q, want %q", got, tc.want)
			}
		})
	}
}

// TestCheckOfIssuers checks that metadata below the start of a token path is found, in both forms.
// With a * segment, metadata is compared when a client requests it.
func TestCheckOfIssuers(t *testing.T) {
	const fixed, any = "/realms/shop/protocol/openid-connect/token", "/realms/*/protocol/openid-connect/token"
	const oidc, oauth = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
	for name, tc := range map[string]struct {
		path, at string
		asked    bool // a client requests its metadata
		warned   bool
	}{
		"behind the issuer":              {fixed, "/realms/shop" + oidc, false, true},
		"before the issuer":              {fixed, oauth + "/realms/shop", false, true},
		"the first segments":             {fixed, "/realms" + oauth, false, true},
		"of another issuer":              {fixed, "/realms/x" + oidc, false, false},
		"before a segment *":             {any, oidc + "/realms", false, true},
		"of any issuer":                  {any, "/realms/shop" + oidc, false, false},
		"of any issuer, and it is asked": {any, "/realms/shop" + oidc, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var log check.Buffer
			w := newWorld(t, 1, func(o *gateway.Options) {
				o.Logger, o.TokenPaths = slog.New(slog.NewTextHandler(&log, nil)), []string{tc.path}
			})
			w.upstream(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != tc.at {
					rw.WriteHeader(http.StatusNotFound)
					return
				}
				_, _ = fmt.Fprint(rw, `{"token_endpoint":"https://idp.example/oauth2/token"}`)
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Check(ctx) }()
			check.Eventually(t, "there is a line", func() bool {
				if tc.asked {
					w.send(http.MethodGet, "/nothing"+oidc, "")
					w.send(http.MethodGet, tc.at, "")
				}
				return strings.Contains(log.String(), "token_path does not match") || !tc.warned && strings.Contains(log.String(), "token_path not checked yet")
			})
			cancel()
			check.OK(t, <-ended)
			check.Equal(t, "warnings: "+log.String(), strings.Count(log.String(), "level=WARN") > 0, tc.warned)
		})
	}
}

// TestCheckOfAnUpstreamThatStartsLater checks that Check retries until the upstream answers, and
// logs its absence once.
func TestCheckOfAnUpstreamThatStartsLater(t *testing.T) {
	var log check.Buffer
	var asked atomic.Int32
	w := newWorld(t, 1, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 10 {
			panic(http.ErrAbortHandler) // breaks the connection
		}
		_, _ = fmt.Fprint(rw, `{"token_endpoint":"https://idp.example/oauth2/token"}`)
	})
	w.CheckNow(t.Context())
	check.Equal(t, "logged that it is away", strings.Count(log.String(), `level=WARN msg="token_path not checked yet: `), 1)
	check.Equal(t, "logged that the path is another: "+log.String(), strings.Count(log.String(), "token_path does not match"), 1)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	asked.Store(-1_000_000)
	w.CheckNow(ctx) // returns at the stop
}
