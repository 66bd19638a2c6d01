package app

import (
	"context"
	"net/http"

	"oauth-server/internal/admin"
	"oauth-server/internal/adminapi"
	"oauth-server/internal/metrics"
)

// makeAdmin makes the operator API. Without an address it is not served, but
// the others still learn of this process through it.
func (s *Server) makeAdmin(context.Context) (err error) {
	s.admin, err = admin.New(admin.Options{ //nolint:contextcheck // its handlers take the context of each request
		Issuer:   s.issuer,
		Instance: s.syncer.ID,
		Version:  thisBuild().Version,
		Tokens:   s.service,
		Clients:  s.clients,
		Policies: s.policies,
		Audit:    s.store,
		Reports:  s.store,
		Counters: s.counters,
		Activity: s.activity,
		Stored:   s.store,
		Sync:     s.syncState,
		Clock:    s.clock.Now,
		Logger:   s.log,

		AuditKept: s.cfg.Audit.Keep.Std(),
	})
	return err
}

// operatorHandler serves the operator API, which wants a token, and what needs
// none: metrics and health hold no secrets, but this listener is not for the
// world all the same.
func (s *Server) operatorHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(adminapi.Prefix+"/", s.admin)
	mux.Handle("GET /metrics", metrics.Handler(s.telemetry.registry))
	mux.HandleFunc("GET /healthz", s.showHealth)
	mux.HandleFunc("GET /readyz", s.showReadiness)
	return mux
}
