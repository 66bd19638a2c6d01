package grants

import (
	"context"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/ratelimit"
)

// admit asks the limiter for one token. The client has authenticated and the user is known, so no
// one else can use their key. Over the limit, the request may be queued, or the client may get its
// last token again, which is then in x.reuse. The caller calls endReuse.
func (s *Service) admit(ctx context.Context, x *issuance, req TokenRequest) (oautherr.RateLimit, error) {
	if s.limiter == nil {
		return oautherr.RateLimit{}, nil
	}
	admission := s.limiter.Admit(ctx, s.judged(x))
	fields, err := oautherr.Of(x.quota(), &admission.Decision)
	if err != nil || admission.Waited == 0 {
		return fields, err
	}
	return fields, s.lookAgain(ctx, x, req, &admission)
}

// deniedAlready denies a request that is banned or over quota before its password is hashed. The
// user is not authenticated yet.
func (s *Service) deniedAlready(ctx context.Context, x *issuance) error {
	if s.limiter == nil {
		return nil
	}
	d, denied := s.limiter.Denied(ctx, s.judged(x))
	if !denied {
		return nil
	}
	_, err := oautherr.Of(x.quota(), &d)
	return err
}

// judged returns the request as the limiter sees it. x may change after the decision.
func (s *Service) judged(x *issuance) limiter.Request {
	r := limiter.Request{
		Key: x.quota(), Grant: string(x.grant), Remote: x.remote,
		Unproven: x.grant == clientcfg.Password, // see deniedAlready
	}
	if x.grant == clientcfg.ClientCredentials {
		r.Reuse = reusing{s, x}
	}
	return r
}

// quota returns the key that the request counts against.
func (x *issuance) quota() ratelimit.Key {
	return ratelimit.Key{ClientID: x.client.ID, Username: x.auth.Username}
}
