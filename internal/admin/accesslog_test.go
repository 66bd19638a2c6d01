package admin_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admin"
)

// TestAccessLog: the access log for operators has the same attributes as the one for clients.
func TestAccessLog(t *testing.T) {
	var log bytes.Buffer
	w := newInstance(t, "i-1", openStore(t), file(), func(o *admin.Options) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	for _, tt := range []struct {
		r    request
		want map[string]any
	}{
		{
			request{method: "GET", path: "/top?limit=7", token: reader},
			map[string]any{"path": "/admin/v1/top", "status": 200.0, "client_id": "viewer"},
		},
		{
			request{method: "PUT", path: "/settings", token: reader},
			map[string]any{"path": "/admin/v1/settings", "status": 403.0, "client_id": "viewer", "error": "forbidden"},
		},
		{
			request{method: "GET", path: "/nothing", token: writer},
			map[string]any{"path": "/admin/v1/nothing", "status": 404.0, "client_id": "ops", "error": "not-found"},
		},
		{
			request{method: "GET", path: "/settings"},
			map[string]any{"path": "/admin/v1/settings", "status": 401.0, "error": "unauthorized"},
		},
	} {
		log.Reset()
		a := w.send(tt.r)
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("the log is not one line of JSON: %v: %s", err, log.String())
		}
		for _, timed := range []string{"time", "duration_ms"} {
			if line[timed] == nil {
				t.Errorf("no %s: %s", timed, log.String())
			}
			delete(line, timed)
		}
		tt.want["level"], tt.want["msg"], tt.want["method"] = "INFO", "request", tt.r.method
		tt.want["remote"], tt.want["bytes"] = "192.0.2.1", float64(len(a.body))
		tt.want["request_id"] = a.header.Get("X-Request-Id")
		if diff := cmp.Diff(tt.want, line); diff != "" || line["request_id"] == "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.r.method, tt.r.path, diff)
		}
	}
}
