package gateway_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestCheck: a token path that the upstream does not have is said at the start.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ metadata, want string }{
		"its path":      {`{"token_endpoint":"https://idp.example/realms/a/protocol/openid-connect/token"}`, ""},
		"another path":  {`{"token_endpoint":"https://idp.example/oauth2/token"}`, "level=WARN msg=\"token_path does not match"},
		"no metadata":   {"", "token_path was not checked"},
		"no JSON":       {"<html>", "token_path was not checked"},
		"no such field": {"{}", "token_path was not checked"},
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
