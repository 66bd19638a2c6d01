package tokenlimit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clock"
	"oauth-server/internal/gateway"
	"oauth-server/internal/judgement"
	"oauth-server/internal/ratelimit"
)

// Limiter counts token requests. It is safe for concurrent use, holds nothing that has to be closed, and must not be
// copied.
type Limiter struct {
	before func(http.Handler) http.Handler
}

// New makes a Limiter. Its error names everything that is wrong with the options.
func New(o Options) (*Limiter, error) {
	settings, err := o.settings()
	if err != nil {
		return nil, fmt.Errorf("tokenlimit: %w", err)
	}
	policies, err := clientcfg.FixedPolicies(settings)
	if err != nil {
		return nil, fmt.Errorf("tokenlimit: %w", err)
	}
	address := o.ClientAddr
	if address == nil {
		address = accesslog.Peer
	}
	inside := gateway.Options{
		Judge: judgement.New(judgement.Options{
			Counters: ratelimit.NewCounters(0), Clock: clock.New(nil).Now,
			Policies: func() *clientcfg.PolicySnapshot { return policies },
		}),
		Claim:      o.UserClaim,
		ClientAddr: func(r *http.Request) (netip.Addr, bool) { return address(r), false },
		Logger:     cmp.Or(o.Logger, slog.Default()),
	}
	if o.Observe != nil {
		inside.Answered = func(ctx context.Context, r gateway.Result) { o.Observe(ctx, eventOf(&r)) }
	}
	before, err := gateway.NewMiddleware(inside)
	if err != nil {
		return nil, fmt.Errorf("tokenlimit: %w", err)
	}
	return &Limiter{before: before}, nil
}

// Handler returns next with the limits before it. Next is a token endpoint: every request is judged but for those of
// GET, HEAD and OPTIONS without a query and a body. It goes before what compresses answers, so that those of next
// can be read, and should go before what reads the body, which may have parsed it as a form all the same. How long a body
// may take to come is for the [http.Server] to say, with its ReadTimeout.
//
// The context of a request does not end for next when the client hangs up, so that a token which is made meanwhile counts. It
// ends at its deadline, if it has one.
//
// An answer of next with a status of 2xx is held back until next returns, up to 1 MiB; a larger one, and any other, is
// written through. Endpoints that are handlers of one Limiter share their counts.
func (l *Limiter) Handler(next http.Handler) http.Handler { return l.before(next) }

// SetUser says whom the token is for that answers the request of ctx. An endpoint whose tokens are opaque calls it before
// it answers, for every grant with a user: such as where it has verified a password, or loaded a code or a refresh token.
// It takes the place of what the answer itself shows. The name is 1 to 255 bytes of UTF-8 without control characters, and
// does not begin with a space; SetUser ignores others, and a ctx that is not of a [Limiter.Handler].
func SetUser(ctx context.Context, user string) { gateway.SetUser(ctx, user) }
