package grants

import (
	"context"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
)

// admit asks the limiter for one token. The client has authenticated and the user is known, so no
// one else can use their key. Over the limit, the request may be queued, or the client may get its
// last token again, which is then in x.reuse. The caller calls endReuse.
func (s *Service) admit(ctx context.Context, x *issuance, req TokenRequest) (oautherr.RateLimit, error) {
	if s.limiter == nil {
		return oautherr.RateLimit{}, nil
	}
	admission := s.limiter.Admit(ctx, s.limiterRequest(x))
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
	d, denied := s.limiter.Denied(ctx, s.limiterRequest(x))
	if !denied {
		return nil
	}
	_, err := oautherr.Of(x.quota(), &d)
	return err
}

// limiterRequest returns the request as the limiter sees it. x may change after the decision.
func (s *Service) limiterRequest(x *issuance) limiter.Request {
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

// lookAgain checks the grant again after the request was queued, because the client, the user or
// the tokens may have been revoked in between, and the lifetimes of new tokens start now. If the
// check fails, the next queued request is admitted.
func (s *Service) lookAgain(ctx context.Context, x *issuance, req TokenRequest, t *limiter.Admission) error {
	quota := x.quota()
	err := s.renew(ctx, x, req)
	if err != nil {
		s.limiter.GiveBack(quota, t)
	}
	return err
}

// renew repeats authenticate and look for a request that passed both before. It does not verify a
// password again.
func (s *Service) renew(ctx context.Context, x *issuance, req TokenRequest) error {
	client, used, err := s.authenticate(req.Credentials, req.Remote)
	if err != nil {
		return err
	}
	if _, err := allowedGrant(client, req.GrantType); err != nil {
		return err
	}
	if x.grant == clientcfg.Password {
		return s.renewPassword(ctx, client, x, req)
	}
	y, err := s.look(ctx, client, x.grant, req)
	if err != nil {
		return err
	}
	y.credential, y.reuse, y.tried = used, x.reuse, x.tried
	*x = *y
	return nil
}

func (s *Service) renewPassword(ctx context.Context, client *clientcfg.Client, x *issuance, req TokenRequest) error {
	scopes, bad := grantScope(client, req.Scope)
	if bad != nil {
		return bad
	}
	if err := s.checkUser(ctx, &x.auth); err != nil {
		return err
	}
	x.client, x.now, x.scopes, x.auth.Scopes = client, s.opts.Now(), scopes, scopes
	if client.May(clientcfg.RefreshToken) {
		s.prepareNext(x)
	}
	return nil
}

// StopWaiting denies all queued requests, and prevents further queueing.
func (s *Service) StopWaiting() {
	if s.limiter != nil {
		s.limiter.StopWaiting()
	}
}

// Waiting returns the number of queued requests.
func (s *Service) Waiting() int {
	if s.limiter == nil {
		return 0
	}
	return s.limiter.Waiting()
}
