package grants

import (
	"context"
	"net/netip"
	"slices"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// Shedder sheds requests while the server is overloaded. [overload.Shedder] implements it.
type Shedder interface {
	// Admit returns the rank of an admitted request. The caller ends the request with Leave. Its
	// error is *[overload.ShedError].
	Admit(ctx context.Context, r *overload.Request) (overload.Rank, error)
	Leave()
	// Starved counts an admitted request as shed after all, because the server lacks processor time
	// to hash its password. ctx is the request's context. It returns *[overload.ShedError]. The
	// caller still ends the request with Leave.
	Starved(ctx context.Context) error
}

var classOfGrant = map[clientcfg.Grant]overload.Class{
	clientcfg.RefreshToken: overload.Refresh, clientcfg.AuthorizationCode: overload.Code,
	clientcfg.ClientCredentials: overload.ClientCredentials, clientcfg.Password: overload.Password,
}

// refusedAnyway reports whether a token request fails without any expensive work: a parameter is
// missing, this server did not issue what it presents, or too many invalid grants have come from
// its address. Such requests skip admission. They must not count among the requests that the shedder
// values most, because a public client proves nothing.
func (s *Service) refusedAnyway(client *clientcfg.Client, grant clientcfg.Grant, req *TokenRequest) bool {
	switch {
	case grant == clientcfg.ClientCredentials:
		return false
	case !s.presents(grant, req):
		return true
	case grant == clientcfg.Password:
		return false
	}
	return s.invalidGrants.Wait(s.opts.Clock(), s.grantKeys(client, req.place(client))...) > 0
}

// presents reports whether a token request has the parameters that its grant needs. For a code or a
// refresh token it also checks that this server issued it.
func (s *Service) presents(grant clientcfg.Grant, req *TokenRequest) bool {
	switch grant {
	case clientcfg.Password:
		return req.Username != "" && req.Password != ""
	case clientcfg.AuthorizationCode:
		return s.isCode(req.Code)
	case clientcfg.RefreshToken:
		_, sealed := s.unseal(req.RefreshToken)
		return sealed
	case clientcfg.ClientCredentials:
	}
	return true
}

// Foresee returns the admission request that Token would make for a token request. It is for code
// that sees the request before it is parsed as one. ok is false if Token would refuse the request
// for another reason. ok ignores the limits of failures, which depend on the address. ok is also
// false for public clients, because they prove nothing. Foresee counts nothing, neither failures
// nor the use of a secret.
func (s *Service) Foresee(req *TokenRequest) (r overload.Request, ok bool) {
	client, known := s.opts.Clients.Client(req.Credentials.ClientID)
	if !known || client.Public {
		return r, false
	}
	grant, err := allowedGrant(client, req.GrantType)
	if err != nil || !s.presents(grant, req) {
		return r, false
	}
	if _, proven := proves(client, &req.Credentials, s.opts.Now()); !proven {
		return r, false
	}
	return s.admissionRequest(client, classOfGrant[grant], netip.Addr{}), true
}

// enter asks the shedder to admit a client's request, before any expensive work. The returned context
// carries the request and its rank, for calls of the store. If there is no error, the caller calls
// EndRequest. Errors: *[Error].
func (s *Service) enter(ctx context.Context, client *clientcfg.Client, class overload.Class, remote netip.Addr) (context.Context, error) {
	r := s.admissionRequest(client, class, remote)
	return s.BeginRequest(ctx, &r)
}

// admissionRequest returns what the shedder decides about. remote is used only for public clients.
func (s *Service) admissionRequest(client *clientcfg.Client, class overload.Class, remote netip.Addr) overload.Request {
	r := overload.Request{ClientID: client.ID, Class: class}
	if client.Public { // anyone can send requests in its name
		r.Source = limiter.SourceOf(remote)
	}
	if s.opts.Policies != nil {
		effective := s.opts.Policies().For(client.ID)
		r.Criticality, r.Trusted = effective.Criticality, effective.Trusted
	}
	if r.Criticality == ratelimit.CriticalityUnset && slices.Contains(client.Audience, clientcfg.AdminAudience) {
		r.Criticality = ratelimit.CriticalPlus // operators must be able to see what happens
	}
	return r
}

// BeginRequest is like enter, for requests of people, which have no known client. EndRequest ends an
// admitted request.
func (s *Service) BeginRequest(ctx context.Context, r *overload.Request) (context.Context, error) {
	rank, err := s.opts.Shedder.Admit(ctx, r)
	switch {
	case err != nil:
		return ctx, Overloaded(err)
	case r.Class == overload.ClientCredentials: // needs no store
		return ctx, nil
	}
	return overload.WithRequest(ctx, r, rank), nil
}

// EndRequest ends a request that was admitted.
func (s *Service) EndRequest() { s.opts.Shedder.Leave() }
