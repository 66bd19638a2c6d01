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

// TestCheckOfAnUpstreamThatStartsLater: it is asked until it answers, and that it did not is logged once.
func TestCheckOfAnUpstreamThatStartsLater(t *testing.T) {
	var log check.Buffer
	var asked atomic.Int32
	w := newWorld(t, 1, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 10 {
			panic(http.ErrAbortHandler) // the connection breaks off
		}
		_, _ = fmt.Fprint(rw, `{"token_endpoint":"https://idp.example/oauth2/token"}`)
	})
	w.CheckNow(t.Context())
	check.Equal(t, "logged that it is away", strings.Count(log.String(), `level=WARN msg="token_path is not checked yet: `), 1)
	check.Equal(t, "logged that the path is another: "+log.String(), strings.Count(log.String(), "token_path does not match"), 1)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	asked.Store(-1_000_000)
	w.CheckNow(ctx) // returns at the stop
}
