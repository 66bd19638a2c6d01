package admin

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
)

// policies returns the policies as they are in the store, so an operator's change is based on
// current values. If the store cannot be read, it returns the last known ones, and the response
// shows their age.
func (s *Server) policies(c *call) *clientcfg.PolicySnapshot {
	s.renew(c)
	return s.o.Policies.Snapshot()
}

// clients is like policies, for the registered clients.
func (s *Server) clients(c *call) *clientcfg.Directory {
	s.renew(c)
	return s.o.Clients.Directory()
}

// renewWithin is how long a request waits for the newest snapshots.
const renewWithin = 2 * time.Second

// renew makes the snapshots at least as new as the store was when the request arrived.
func (s *Server) renew(c *call) {
	ctx, cancel := context.WithTimeout(c.Request().Context(), renewWithin)
	defer cancel()
	if err := s.o.Clients.Renew(ctx, time.Since(c.started)); err != nil {
		c.aged(time.Since(s.o.Clients.CheckedAt()))
	}
}

// aged sets the Age header (RFC 9111 5.1) to age, if that is older than the current value.
func (c *call) aged(age time.Duration) {
	if age = max(age, time.Second); age > c.age {
		c.age = age
		c.Response().Header().Set(adminapi.AgeHeader, fmt.Sprint(int64(age.Seconds())))
	}
}
