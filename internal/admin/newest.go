package admin

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
)

// policies returns the policies as they are in the store, so that what an operator reads can be changed.
// If they cannot be read they are the last known, and the answer says how old they are.
func (s *Server) policies(c *call) *clientcfg.PolicySnapshot {
	if err := s.o.Policies.Renew(c.Request().Context()); err != nil {
		c.aged(s.o.Now().Sub(s.o.Policies.Status().CheckedAt))
	}
	return s.o.Policies.Snapshot()
}

// clients is policies for the registered clients.
func (s *Server) clients(c *call) *clientcfg.Directory {
	ctx, cancel := context.WithTimeout(c.Request().Context(), clientcfg.RenewWithin)
	defer cancel()
	if err := s.o.Clients.Renew(ctx, 0); err != nil {
		c.aged(time.Since(s.o.Clients.CheckedAt()))
	}
	return s.o.Clients.Directory()
}

// aged says in the answer how old what it shows is (RFC 9111 5.1), if it is older than what was said so far.
func (c *call) aged(age time.Duration) {
	if age = max(age, time.Second); age > c.age {
		c.age = age
		c.Response().Header().Set(adminapi.AgeHeader, fmt.Sprint(int64(age.Seconds())))
	}
}
