package grants

import (
	"context"

	"oauth-server/internal/admission"
	"oauth-server/internal/clientcfg"
)

// Gate refuses requests while the server is overloaded. [admission.Gate] is one.
type Gate interface {
	// Admit returns the rank of a request that is to be worked on, which Leave ends. Its error is *[admission.ShedError].
	Admit(ctx context.Context, r *admission.Request) (admission.Rank, error)
	Leave()
}

// open is the gate where there is none.
type open struct{}

// Admit implements [Gate].
func (open) Admit(context.Context, *admission.Request) (admission.Rank, error) {
	return admission.Ranks - 1, nil
}

// Leave implements [Gate].
func (open) Leave() {}

var classOfGrant = map[clientcfg.Grant]admission.Class{
	clientcfg.RefreshToken: admission.Refresh, clientcfg.AuthorizationCode: admission.Code,
	clientcfg.ClientCredentials: admission.ClientCredentials, clientcfg.Password: admission.Password,
}

// enter asks the gate about a request of a client, before any work that costs. The context that it returns carries
// the rank, for calls of the store. The caller calls LeaveGate if there is no error. Errors: *[Error].
func (s *Service) enter(ctx context.Context, client *clientcfg.Client, class admission.Class) (context.Context, error) {
	r := admission.Request{ClientID: client.ID, Class: class}
	if s.opts.Policies != nil {
		effective := s.opts.Policies().For(client.ID)
		r.Criticality, r.Trusted = effective.Criticality, effective.Trusted
	}
	return s.EnterGate(ctx, &r)
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
	return admission.WithRank(ctx, rank), nil
}

// LeaveGate ends a request that was admitted.
func (s *Service) LeaveGate() { s.opts.Gate.Leave() }
