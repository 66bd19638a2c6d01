package grants

import (
	"context"
	"net/netip"
	"slices"

	"oauth-server/internal/admission"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/network"
	"oauth-server/internal/ratelimit"
)

// Gate refuses requests while the server is overloaded. [admission.Gate] is one.
type Gate interface {
	// Admit returns the rank of a request that is to be worked on, which Leave ends. Its error is *[admission.ShedError].
	Admit(ctx context.Context, r *admission.Request) (admission.Rank, error)
	Leave()
	// Starved counts a request that was admitted, of which ctx is that of the work on it, as refused after all: the
	// server leaves too little of the processors for its password. It returns *[admission.ShedError]. Leave ends the
	// request as any other.
	Starved(ctx context.Context) error
}

// open is the gate where there is none.
type open struct{}

// Admit implements [Gate].
func (open) Admit(context.Context, *admission.Request) (admission.Rank, error) {
	return admission.Ranks - 1, nil
}

// Leave implements [Gate].
func (open) Leave() {}

// Starved implements [Gate].
func (open) Starved(context.Context) error {
	return &admission.ShedError{RetryAfter: admission.RetryAfter(0), Short: admission.Processor}
}

var classOfGrant = map[clientcfg.Grant]admission.Class{
	clientcfg.RefreshToken: admission.Refresh, clientcfg.AuthorizationCode: admission.Code,
	clientcfg.ClientCredentials: admission.ClientCredentials, clientcfg.Password: admission.Password,
}

// refusedAnyway reports whether a token request is refused without any work that costs: it lacks what it needs, what it
// presents was not issued by this server, or too much of that has come from there. Such requests need no gate, and must
// not pass for what the gate admits last: a public client proves nothing.
func (s *Service) refusedAnyway(client *clientcfg.Client, grant clientcfg.Grant, req *TokenRequest) bool {
	switch {
	case grant == clientcfg.ClientCredentials:
		return false
	case !s.presents(grant, req):
		return true
	case grant == clientcfg.Password:
		return false
	}
	return s.invalidGrants.wait(s.opts.Clock(), s.grantKeys(client, req.place(client))) > 0
}

// presents reports whether a token request has what its grant needs, and a code or a refresh token is one of this server.
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

// Foresee returns what Token would ask the gate about a token request, for what sees the request before it has been
// read as one. ok is false if Token would refuse it for another reason, but for too many failures, which are counted by the
// address; and of public clients, which prove nothing. It counts nothing, neither failures nor the use of a secret.
func (s *Service) Foresee(req *TokenRequest) (r admission.Request, ok bool) {
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

// enter asks the gate about a request of a client, before any work that costs. The context that it returns carries
// the request and its rank, for calls of the store. The caller calls LeaveGate if there is no error. Errors: *[Error].
func (s *Service) enter(ctx context.Context, client *clientcfg.Client, class admission.Class, remote netip.Addr) (context.Context, error) {
	r := s.admissionRequest(client, class, remote)
	return s.EnterGate(ctx, &r)
}

// admissionRequest is what the gate decides about. The address is that of a request of a public client.
func (s *Service) admissionRequest(client *clientcfg.Client, class admission.Class, remote netip.Addr) admission.Request {
	r := admission.Request{ClientID: client.ID, Class: class}
	if client.Public { // everyone can send requests as one
		r.Source = network.Source(remote)
	}
	if s.opts.Policies != nil {
		effective := s.opts.Policies().For(client.ID)
		r.Criticality, r.Trusted = effective.Criticality, effective.Trusted
	}
	if r.Criticality == ratelimit.CriticalityUnset && slices.Contains(client.Audience, clientcfg.AdminAudience) {
		r.Criticality = ratelimit.CriticalPlus // operators have to see what happens
	}
	return r
}

// EnterGate is enter for requests of which the client is not known: those of people. LeaveGate ends what it admits.
func (s *Service) EnterGate(ctx context.Context, r *admission.Request) (context.Context, error) {
	rank, err := s.opts.Gate.Admit(ctx, r)
	switch {
	case err != nil:
		return ctx, Overloaded(err)
	case r.Class == admission.ClientCredentials: // which needs no store
		return ctx, nil
	}
	return admission.WithRequest(ctx, r, rank), nil
}

// LeaveGate ends a request that was admitted.
func (s *Service) LeaveGate() { s.opts.Gate.Leave() }
