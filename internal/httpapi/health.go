package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Status is the state of the server, as reported by /readyz.
type Status string

// The states of the server. A degraded server still answers correctly, for example from memory
// while its database is unavailable, and should still receive requests.
const (
	Ready    Status = "ready"
	Degraded Status = "degraded"
	Down     Status = "down"
)

// Readiness is the body of /readyz. Checks contains the problems by part of the server. A ready
// server may have problems that affect only single clients. Readiness is public, so it contains no
// host or client names.
type Readiness struct {
	Status Status            `json:"status"`
	Checks map[string]string `json:"checks,omitempty"`
}

// healthz handles GET /healthz. It only shows that the process answers. If it checked more, a
// failing database would restart every instance.
func (s *Server) healthz(c *call) error {
	writeJSON(c, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// readyz handles GET /readyz. It reports whether requests should be sent to this instance.
func (s *Server) readyz(c *call) error {
	r := s.o.Ready(c.ctx())
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("httpapi: encode readiness: %w", err)
	}
	status := http.StatusOK
	if r.Status == Down {
		status = http.StatusServiceUnavailable
	}
	writeJSON(c, status, body)
	return nil
}
