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

// Limit admits a number of requests in a sliding window. The count in the window is estimated from
// the counts of the current and the previous fixed window, as if the requests of the previous one
// were spread evenly. After a burst at the end of the previous window, a window can therefore
// contain up to twice as many requests. Requests with a user that only the answer shows may be
// added to that, see the package documentation.
type Limit struct {
	// Requests is the number of admitted requests, from 1 to 1,000,000,000.
	Requests int64
	// Window is a whole number of milliseconds, up to 31 days.
	Window time.Duration
	// Name is the name of the limit in RateLimit fields and events: letters, digits, '-', '_' and
	// '.', unique among the limits that can apply to one request. Empty: "per-" and the window, for
	// example per-1m, and total-per-1m in Total.
	Name string
}

// Policy holds the limits of a client. A request must be within all limits that apply to it.
type Policy struct {
	// User limits each user of the client, in all grants except client_credentials. Empty: as in
	// [Options].Default. Empty in Default: 100 requests a minute.
	User []Limit
	// Client limits the client's own requests, with client_credentials. Empty: as in
	// [Options].Default. Empty in Default: 100 requests a minute.
	Client []Limit
	// Total limits the client over all users and grants. Empty: as in Default. Empty in Default: no
	// limit.
	Total []Limit
	// DryRun counts requests of the client and reports them to [Options].Observe, but never denies
	// them.
	DryRun bool
	// Unlimited neither counts nor denies requests of the client. It cannot be set in Default.
	Unlimited bool
}

// Options configure a [Limiter]. The zero value limits every user of every client, and every
// client, to 100 requests a minute.
type Options struct {
	// Default is the policy of clients that are not in Clients. Its DryRun also applies to the
	// clients in Clients.
	Default Policy
	// Clients maps a client_id to the client's own policy.
	Clients map[string]Policy
	// UserClaim is the name of the claim with the user, in an id_token or a JWT access token.
	// Empty: sub.
	UserClaim string
	// ClientAddr returns the client address of a request, for the limit on concurrent requests from
	// one address. Set it behind a proxy. Otherwise all requests have the proxy's address. Nil: the
	// address in RemoteAddr.
	ClientAddr func(*http.Request) netip.Addr
	// Observe is called with the Event of each token request after its answer, with the context of
	// the request. It must not block. Nil disables it.
	Observe func(context.Context, Event)
	// Logger receives messages for operators: internal errors, at error level. Nil: [slog.Default].
	Logger *slog.Logger
}

// settings returns the validated limits in internal form.
func (o *Options) settings() (ratelimit.Settings, error) {
	s := ratelimit.DefaultSettings()
	if o.Default.Unlimited {
		return s, errors.New("Default.Unlimited is set, but only clients can be unlimited")
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

// limits converts limits to internal form. A limit without a name is named after its window, with
// the prefix.
func limits(prefix string, given []Limit) (all []ratelimit.Limit) {
	for _, l := range given {
		name := cmp.Or(l.Name, prefix+ratelimit.FormatWindow(l.Window))
		limit := ratelimit.NewLimit(name, l.Requests, l.Window)
		limit.OnOutage = ratelimit.Memory // counts are not shared
		all = append(all, limit)
	}
	return all
}
