package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/lab/traffic"
)

func TestCommandLine(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.json")
	tests := map[string]struct{ args, want string }{
		"nothing":          {"", "usage:"},
		"unknown":          {"play", "usage:"},
		"no file":          {"run -target http://127.0.0.1:1", "usage:"},
		"no target":        {"run -credentials x", "usage:"},
		"no database":      {"prepare -credentials x", "usage:"},
		"unknown flag":     {"run -fast", "not defined"},
		"no credentials":   {"run -target http://127.0.0.1:1 -credentials " + missing, "no such file"},
		"bad MongoDB":      {"prepare -mongodb-uri nonsense -credentials " + missing, "must begin with mongodb://"},
		"no file of it":    {"prepare -mongodb-uri-file " + missing + " -credentials " + missing, "no such file"},
		"argument to flag": {"run -for long", "invalid value"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), strings.Fields(tt.args), &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestRunPrintsASummary(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":"temporarily_unavailable"}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "credentials.json")
	credentials := traffic.Credentials{Secrets: map[string]string{}}
	for _, c := range traffic.DemoClients() {
		credentials.Secrets[c.ID] = "secret"
	}
	if err := credentials.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"prepare", "-credentials", file, "-mongodb-uri", "nonsense"}, nil); err != nil {
		t.Errorf("prepare with an existing file: %v, want nothing done", err)
	}
	var out bytes.Buffer
	args := []string{"run", "-credentials", file, "-target", server.URL + "/", "-for", "300ms", "-scale", "20"}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "429 x ") || strings.Contains(out.String(), "error") {
		t.Errorf("got\n%s", out.String())
	}
}
