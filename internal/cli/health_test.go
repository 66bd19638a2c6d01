package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/cli/command"
)

func TestHealth(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			_, _ = w.Write([]byte(`{"status":"ok"}`))
		case "/slow":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"down"}`))
		}
	}))
	defer server.Close()
	tests := map[string]struct {
		args       string
		status     int
		out, error string
	}{
		"well":         {"--url " + server.URL + "/healthz", command.ExitOK, `{"status":"ok"}`, ""},
		"not well":     {"--url " + server.URL + "/readyz", command.ExitFailed, "", `the server is not healthy: 503 Service Unavailable {"status":"down"}`},
		"no answer":    {"--timeout 10ms --url " + server.URL + "/slow", command.ExitFailed, "", "deadline exceeded"},
		"nobody there": {"--url http://127.0.0.1:1/healthz", command.ExitFailed, "", "refused"},
		"no URL":       {"--url :", command.ExitUsage, "", "missing protocol scheme"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, stderr, status := run(t, "", append([]string{"health"}, strings.Fields(tt.args)...)...)
			if status != tt.status || strings.TrimSpace(out) != tt.out || !strings.Contains(stderr, tt.error) {
				t.Errorf("status %d, out %q, error %q", status, out, stderr)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var b build
	runJSON(t, &b, "", "version")
	if b.Version == "" || !strings.HasPrefix(b.Go, "go1.") {
		t.Errorf("%+v", b)
	}
	if out, _, _ := run(t, "", "version"); !strings.HasPrefix(out, "oauth-server ") || strings.Contains(out, "  ") {
		t.Error(out)
	}
}
