package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestOverdueEnds: what should have ended is marked wherever its end is shown.
func TestOverdueEnds(t *testing.T) {
	pages := map[string]string{
		"/clients": `{"clients":[{"client_id":"shop","source":"api","until":"2026-01-01T00:00:00Z"},
			{"client_id":"app","source":"api","until":"2999-01-01T00:00:00Z"}]}`,
		"/unregistered": `{"unregistered":[]}`,
		"/settings":     `{"mode":"enforce","meta":{"until":"2026-01-01T00:00:00Z"}}`,
		"/tiers":        `{"tiers":[{"name":"gold","meta":{"until":"2026-01-01T00:00:00Z"}}]}`,
		"/changes":      `{"version":3,"targets":[{"target":"tiers/gold","value":{},"until":"2026-01-01T00:00:00Z","returns_to":{}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(pages[strings.TrimPrefix(r.URL.Path, "/admin/v1")]))
	}))
	t.Cleanup(server.Close)
	for args, says := range map[string]string{
		"list":      "changed here, until 2026-01-01T00:00:00Z (overdue)",
		"get":       "2026-01-01T00:00:00Z (overdue)",
		"tier list": "gold, until 2026-01-01T00:00:00Z (overdue)",
		"export":    "# tiers/gold is temporary until 2026-01-01T00:00:00Z (overdue); below is what it stays until it can end.",
	} {
		flags := []string{"--token", "x", "--issuer", "http://127.0.0.1", "--server", server.URL}
		stdout := runOK(t, "", append(append([]string{"limits"}, strings.Fields(args)...), flags...)...)
		has(t, stdout, says)
		check.Equal(t, "marks of "+args, strings.Count(stdout, "(overdue)"), 1)
	}
}
