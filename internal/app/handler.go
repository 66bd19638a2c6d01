package app

import (
	"context"
	"net/netip"
	"slices"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
)

func (s *Server) makeService(context.Context) (err error) {
	s.service, err = grants.New(grants.Options{
		Issuer:               s.issuer,
		Clients:              s.clients,
		Store:                s.watched,
		Signer:               s.keys,
		Logger:               s.log,
		CodeLifetime:         s.cfg.Tokens.CodeTTL.Std(),
		AccessTokenLifetime:  s.cfg.Tokens.AccessTTL.Std(),
		RefreshTokenLifetime: s.cfg.Tokens.RefreshTTL.Std(),
		SessionLifetime:      s.cfg.Sessions.TTL.Std(),
		ClientFailures:       failureLimits(s.cfg.FailedAttempts.Window, s.cfg.FailedAttempts.Clients),
		SignInFailures:       failureLimits(s.cfg.FailedAttempts.Window, s.cfg.FailedAttempts.Users),
		Clock:                s.clock.Now,
		Counters:             s.counters,
		Policies:             s.policies.Snapshot,
		Observe:              s.decided,
	})
	return err
}

func (s *Server) makeHandler(context.Context) error {
	handler, err := httpapi.New(httpapi.Options{
		Issuer:         s.issuer,
		Tokens:         s.service,
		Authorizations: s.service,
		Sessions:       s.service,
		Inspector:      s.service,
		Keys:           s.keys,
		Ready:          s.readiness,
		Answered:       s.telemetry.answered,
		Logger:         s.log,
		TrustedProxies: prefixes(s.cfg.TrustedProxies),
		GrantTypes:     s.grantTypes(),
		ScopeTexts:     s.cfg.Scopes,
	})
	if err != nil {
		return err
	}
	s.http = newHTTPServer(s.farewell.around(s.telemetry.around(handler)), s.log)
	s.http.ConnState = s.farewell.count
	return nil
}

// grantTypes are those of the metadata. The password grant is not advertised
// unless a client was registered for it: RFC 9700 2.4 says not to use it.
func (s *Server) grantTypes() []clientcfg.Grant {
	used := false
	for c := range s.clients.Directory().All() {
		used = used || c.May(clientcfg.Password)
	}
	return slices.DeleteFunc(clientcfg.Grants(), func(g clientcfg.Grant) bool {
		return g == clientcfg.Password && !used
	})
}

func prefixes(in []config.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, len(in))
	for i, p := range in {
		out[i] = p.Prefix
	}
	return out
}
