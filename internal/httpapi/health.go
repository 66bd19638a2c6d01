package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Status is the state of the server in /readyz.
type Status string

// The states of the server. A degraded server still answers correctly, for instance from memory
// while its database is away, and should still get requests.
const (
	Ready    Status = "ready"
	Degraded Status = "degraded"
	Down     Status = "down"
)

// Readiness is the body of /readyz. Checks names what is wrong, by part of the server, and is empty
// if nothing is; a ready server may have some that concern single clients. It is public, so it names no
// hosts and no clients.
type Readiness struct {
	Status Status            `json:"status"`
	Checks map[string]string `json:"checks,omitempty"`
}

// healthz is GET /healthz: the process answers. It checks nothing else, or a failing database would
// have every instance restarted.
func (s *Server) healthz(c *call) error {
	writeJSON(c, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// readyz is GET /readyz: whether requests should be sent to this instance.
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
