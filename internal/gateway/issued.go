package gateway

import (
	"context"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/judgement"
	"oauth-server/internal/ratelimit"
)

// issued is a request that got a token and is to be settled, once. Unlike its [tokenCall] it may outlive the answer.
type issued struct {
	g       *Gateway
	said    tokenrequest.Request
	turn    *judgement.Reservation
	claims  subject.Claims
	hasUser bool
	// followed is set if the user of the request was known before the answer.
	followed bool
	// recalled is set if the answer shows no user, and its user is the one whom the request led to.
	recalled bool
	// byName is the user of a password grant by its username, where nothing else says who that is. It counts already.
	byName string
}

// settle counts the request against the user, or against none if that is empty, and remembers what leads to the user. It
// returns the decision that the RateLimit fields are to show, and whether the user had no room left.
func (i *issued) settle(ctx context.Context, user string) (d ratelimit.Decision, late bool) {
	g := i.g
	if i.hasUser && user == "" {
		g.counts.unknown[i.claims.Reason].Add(1)
	}
	if d, late = g.o.Judge.Settle(ctx, i.turn, user); late {
		g.counts.late.Add(1)
	}
	if user == "" && i.byName != "" {
		user, i.recalled = i.byName, g.asking != nil // the endpoint is asked again for the next token of the username
	}
	if user != "" {
		i.remember(user)
	}
	if late { // or the next refresh, at another instance, would be of a user who is not known, too
		g.o.Shared.FlushNow(context.WithoutCancel(ctx))
	}
	return d, late
}
