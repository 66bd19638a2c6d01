package config

import (
	"errors"
	"maps"
	"slices"

	"oauth-server/internal/ratelimit"
)

// PolicyPath is the path of a client's policy, for problems found elsewhere.
func PolicyPath(clientID string) string { return join("rate_limit.clients", clientID) }

// Settings is the configuration as internal/ratelimit takes it.
func (r *RateLimit) Settings() ratelimit.Settings {
	s := r.general()
	s.Clients = make(map[string]ratelimit.Policy, len(r.Clients))
	for id, p := range r.Clients {
		s.Clients[id] = p.policy()
	}
	return s
}

// general is what holds for all clients.
func (r *RateLimit) general() ratelimit.Settings {
	return ratelimit.Settings{
		Mode:          ratelimit.Mode(r.Mode),
		Instance:      ratelimit.Mode(r.InstanceMode),
		CanaryPercent: r.CanaryPercent,
		Default: ratelimit.Policy{
			User: limits(r.Default.User), Client: limits(r.Default.Client), HideHeaders: r.Default.HideHeaders,
		},
	}
}

func (p ClientPolicy) policy() ratelimit.Policy {
	return ratelimit.Policy{
		User: limits(p.User), Client: limits(p.Client),
		Trusted: p.Trusted, Mode: ratelimit.Mode(p.Mode), HideHeaders: p.HideHeaders,
	}
}

func limits(in []Limit) []ratelimit.Limit {
	var out []ratelimit.Limit
	for _, l := range in {
		out = append(out, ratelimit.Limit{
			Name: l.Name, Requests: l.Requests, Window: l.Window.Std(),
			Frames: l.Frames, Algorithm: ratelimit.Algorithm(l.Algorithm), SoftRatio: l.SoftRatio,
			OnOutage: ratelimit.OnOutage(l.OnOutage),
		})
	}
	return out
}

// maxMaxKeys is about 200 GiB of counters.
const maxMaxKeys = 1 << 30

// check lets internal/ratelimit judge, and adds what it cannot see: a list
// that was written down empty is not an absent one.
func (r *RateLimit) check(ps *FieldErrors) {
	general := r.general()
	ps.adopt("rate_limit", general.Validate())
	if r.Mode == "" {
		ps.addf("rate_limit.mode", "must be enforce, dry_run or off")
	}
	if r.MaxKeys < 1 || r.MaxKeys > maxMaxKeys {
		ps.addf("rate_limit.max_keys", "must be from 1 to %d, not %d", maxMaxKeys, r.MaxKeys)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Clients)) {
		p := r.Clients[id]
		policy := p.policy()
		ps.adopt(PolicyPath(id), policy.Validate())
		checkWritten(ps, PolicyPath(id)+".user", p.User)
		checkWritten(ps, PolicyPath(id)+".client", p.Client)
	}
}

func checkWritten(ps *FieldErrors, path string, list []Limit) {
	if list != nil && len(list) == 0 {
		ps.addf(path, "needs at least one limit; to never limit the client, say trusted: true")
	}
}

// adopt takes over what internal/ratelimit found.
func (ps *FieldErrors) adopt(path string, err error) {
	var found ratelimit.FieldErrors
	errors.As(err, &found)
	for _, e := range found.Under(path) {
		ps.addf(e.Path, "%s", e.Problem)
	}
}
