package tokenlimit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"oauth-server/internal/gateway"
	"oauth-server/internal/limiter"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// Limiter counts token requests. It is safe for concurrent use, need not be closed, and must not be
// copied.
type Limiter struct {
	before func(http.Handler) http.Handler
}

// New returns a Limiter. Its error names all invalid options.
func New(o Options) (*Limiter, error) {
	settings, err := o.settings()
	if err != nil {
		return nil, fmt.Errorf("tokenlimit: %w", err)
	}
	limits, err := ratelimit.Compile(settings)
	if err != nil {
		return nil, fmt.Errorf("tokenlimit: %w", err)
	}
	address := o.ClientAddr
	if address == nil {
		address = accesslog.Peer
	}
	inside := gateway.Options{
		Limiter: limiter.New(limiter.Options{
			Counters: counting.NewCounters(0), Clock: steady(),
			Policies: func() limiter.Policies { return policies{limits} },
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

// policies are limits without candidates.
type policies struct{ *ratelimit.Compiled }

// Trial returns false.
func (policies) Trial(string) (t ratelimit.Trial, ok bool) { return t, false }

// steady returns a clock that is not affected when the system's clock is set.
func steady() func() time.Time {
	start := time.Now()
	wall := start.Round(0)
	return func() time.Time { return wall.Add(time.Since(start)) }
}

// Handler returns next with limits in front of it. next is a token endpoint. Every request is
// checked, except GET, HEAD and OPTIONS without a query and a body. Place Handler inside middleware
// that compresses answers, so it can read the answers of next. Middleware that reads the body
// should go between Handler and next, although a body that was already parsed as a form is
// accepted. Use the ReadTimeout of the [http.Server] to bound the time to receive a body.
//
// The context of a request does not end when the client hangs up, so a token that next still issues
// is counted. It ends at its deadline, if it has one.
//
// An answer of next with status 2xx and up to 1 MiB is held back until next returns. Larger answers
// and other statuses are written through. All handlers of one Limiter share their counts.
func (l *Limiter) Handler(next http.Handler) http.Handler { return l.before(next) }

// SetUser sets the user of the token in the answer to the request of ctx. An endpoint with opaque
// tokens calls it before it answers, for every grant with a user, for example after it has verified
// a password, or loaded a code or a refresh token. It overrides the user in the answer itself. The
// name has 1 to 255 bytes of UTF-8 without control characters and does not begin with a space.
// SetUser ignores other names, and contexts that do not come from [Limiter.Handler].
func SetUser(ctx context.Context, user string) { gateway.SetUser(ctx, user) }
