package gateway

import (
	"context"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
)

// issued is a request that got a token. It is settled once. Unlike its [tokenCall], it may outlive
// the answer.
type issued struct {
	g           *Gateway
	said        tokenrequest.Request
	reservation *limiter.Reservation
	answer      subject.Answer
	hasUser     bool
	// followed is set if the user was known before the answer.
	followed bool
	// recalled is set if the answer shows no user and the user comes from the request.
	recalled bool
	// byName is the user derived from the username of a password grant, if nothing else shows the
	// user. The request already counts against it.
	byName string
}

// settle counts the request against the user, or against no user if it is empty, and remembers the
// mapping to the user. It returns the decision for the RateLimit fields, and whether the user was
// already at their limit.
func (i *issued) settle(ctx context.Context, user string) (d ratelimit.Decision, late bool) {
	g := i.g
	if i.hasUser && user == "" {
		g.counts.unknown[i.answer.Reason].Add(1)
	}
	if d, late = g.o.Limiter.Settle(ctx, i.reservation, user); late {
		g.counts.late.Add(1)
	}
	if user == "" && i.byName != "" {
		user, i.recalled = i.byName, g.asking != nil // so the next token of this username is introspected again
	}
	if user != "" {
		i.remember(user)
	}
	if late { // otherwise another instance would not know the user of the next refresh
		g.o.Shared.FlushNow(context.WithoutCancel(ctx))
	}
	return d, late
}
