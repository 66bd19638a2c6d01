package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/traffic"
)

func TestCommandLine(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.json")
	for args, want := range map[string]string{
		"":                               "usage:",
		"play":                           "usage:",
		"run -target http://127.0.0.1:1": "usage:",
		"run -credentials x":             "usage:",
		"prepare -credentials x":         "usage:",
		"run -fast":                      "not defined",
		"run -target http://127.0.0.1:1 -credentials " + missing:            "no such file",
		"prepare -mongodb-uri-file " + missing + " -credentials " + missing: "no such file",
	} {
		_, err := run(t.Context(), strings.Fields(args))
		check.ErrorSays(t, err, want)
	}
}

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		cancel()
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "credentials.json")
	credentials := traffic.Credentials{Secrets: map[string]string{}}
	for _, c := range traffic.DemoClients() {
		credentials.Secrets[c.ID] = "secret"
	}
	check.OK(t, credentials.WriteFile(file))
	_, err := run(ctx, []string{"prepare", "-credentials", file, "-mongodb-uri-file", "nonsense"})
	check.OK(t, err, "with an existing file nothing is done")
	summary, err := run(ctx, []string{"run", "-credentials", file, "-target", server.URL})
	check.OK(t, err)
	check.Equal(t, "errors", summary.Total("error"), 0)
}
