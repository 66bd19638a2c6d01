package grants

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/judgement"
	"oauth-server/internal/ratelimit"
)

// admit asks the limiter for one token. The client has authenticated and the user is known, so no
// one else can use their key. Over the limit, the request may be queued, or the client may get its
// last token again, which is then in x.reuse. The caller calls endTurn.
func (s *Service) admit(ctx context.Context, x *issuance, req TokenRequest) (RateLimit, error) {
	if s.limiter == nil {
		return RateLimit{}, nil
	}
	turn := s.limiter.Admit(ctx, s.judged(x))
	fields, err := Limited(x.quota(), &turn.Decision)
	if err != nil || turn.Waited == 0 {
		return fields, err
	}
	return fields, s.lookAgain(ctx, x, req, &turn)
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
	_, err := Limited(x.quota(), &d)
	return err
}

// judged returns the request as the limiter sees it. x may change after the decision.
func (s *Service) judged(x *issuance) judgement.Request {
	r := judgement.Request{
		Key: x.quota(), Grant: x.grant, Remote: x.remote,
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

// Limited converts a decision on a request of key k into the RateLimit fields of the response, or
// into *[LimitedError].
func Limited(k ratelimit.Key, d *ratelimit.Decision) (fields RateLimit, err error) {
	fields.Policy, fields.Limit = d.Headers()
	wait := time.Duration(d.RetryAfterSeconds()) * time.Second
	switch {
	case d.Outcome == ratelimit.Banned:
		return RateLimit{}, &LimitedError{RetryAfter: wait, Limit: banLimit, Banned: true, reason: bannedFor(k)}
	case d.Rejected():
		st, _ := d.BindingLimit()
		return RateLimit{}, &LimitedError{
			RetryAfter: wait, RateLimit: fields,
			Limit: st.Limit.Name, QuotaExceeded: d.Exceeded(), Violated: d.Violated(), reason: overQuota(k, d),
		}
	}
	return fields, nil
}

func overQuota(k ratelimit.Key, d *ratelimit.Decision) string {
	switch {
	case d.OverTotal():
		return "Token rate limit exceeded for this client and all its users together"
	case d.OverShared():
		return "Token rate limit exceeded for this client from this address"
	case k.Username == "":
		return "Token rate limit exceeded for this client"
	}
	return "Token rate limit exceeded for this client and user"
}

// banLimit is the name of a ban in the log, in place of the name of a limit.
const banLimit = "ban"

// bannedFor returns the reason for a ban, as shown to the client.
func bannedFor(k ratelimit.Key) string {
	if k.Username == "" {
		return "This client is banned for a time, because it repeatedly exceeded its token rate limit"
	}
	return "This client and user are banned for a time, because they repeatedly exceeded their token rate limit"
}
