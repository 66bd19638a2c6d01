package tokenlimit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"oauth-server/internal/ratelimit"
)

// Limit admits a number of requests in a window that slides, which is estimated from two counts, of the present and of the
// previous one of consecutive windows: as if the requests of the previous one had been spread evenly over it. After a burst at
// its end, a window can so have up to twice as many. Requests whose user shows only with the answer may come on top: see the
// package.
type Limit struct {
	// Requests is how many are admitted, from 1 to 1,000,000,000.
	Requests int64
	// Window is whole milliseconds, up to 31 days.
	Window time.Duration
	// Name is what the RateLimit fields and events call the limit: letters, digits, '-', '_' and '.', unique among those
	// that can apply to one request. Empty: "per-" and the window, such as per-1m, and total-per-1m in Total.
	Name string
}

// Policy is the limits of a client. A request has to have room under all that concern it.
type Policy struct {
	// User limits each user of the client, in all grants but client_credentials. Empty: as in [Options].Default, and
	// there 100 requests a minute.
	User []Limit
	// Client limits what the client gets for itself, with client_credentials. Empty: likewise.
	Client []Limit
	// Total limits the client over all its users and all grants. Empty: as in Default, and there no limit.
	Total []Limit
	// DryRun has requests of the client counted, and reported to [Options].Observe, but never denied.
	DryRun bool
	// Unlimited has requests of the client neither counted nor denied. It cannot be set in Default.
	Unlimited bool
}

// Options configure a [Limiter]. The zero value limits every user of every client, and every client, to 100 requests a
// minute.
type Options struct {
	// Default is for clients that are not in Clients. Its DryRun is for those too.
	Default Policy
	// Clients has clients with limits of their own, by client_id.
	Clients map[string]Policy
	// UserClaim is the claim that names the user in an id_token, or in an access token that is a JWT. Empty: sub.
	UserClaim string
	// ClientAddr returns the address that a request comes from, for the bound on what one address has under way at once.
	// It is needed behind a proxy, whose address all requests have otherwise. Nil: that of RemoteAddr.
	ClientAddr func(*http.Request) netip.Addr
	// Observe is called with what became of each token request, once it is answered, with the context of the request. It
	// must not block. Nil disables it.
	Observe func(context.Context, Event)
	// Logger gets what operators should know: defects, at error level. Nil: [slog.Default].
	Logger *slog.Logger
}

// settings returns the limits as they are validated and counted.
func (o *Options) settings() (ratelimit.Settings, error) {
	s := ratelimit.DefaultSettings()
	if o.Default.Unlimited {
		return s, errors.New("Default.Unlimited is set: only clients can be unlimited")
	}
	if o.Default.DryRun {
		s.Mode = ratelimit.DryRun
	}
	given := o.Default.policy()
	if len(given.User) > 0 {
		s.Default.User = given.User
	}
	if len(given.Client) > 0 {
		s.Default.Client = given.Client
	}
	s.Default.Total = given.Total
	s.Clients = make(map[string]ratelimit.Policy, len(o.Clients))
	for id, p := range o.Clients {
		own := p.policy()
		if p.DryRun {
			own.Mode = ratelimit.DryRun
		}
		own.Trusted = p.Unlimited
		s.Clients[id] = own
	}
	return s, s.Validate()
}

func (p *Policy) policy() ratelimit.Policy {
	return ratelimit.Policy{User: limits("per-", p.User), Client: limits("per-", p.Client), Total: limits("total-per-", p.Total)}
}

// limits returns those given. One without a name is called by its window, after the prefix.
func limits(prefix string, given []Limit) (all []ratelimit.Limit) {
	for _, l := range given {
		name := cmp.Or(l.Name, prefix+ratelimit.FormatWindow(l.Window))
		limit := ratelimit.NewLimit(name, l.Requests, l.Window)
		limit.OnOutage = ratelimit.Memory // counts are not shared
		all = append(all, limit)
	}
	return all
}
