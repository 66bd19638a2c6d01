package simulate

import (
	"maps"
	"slices"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// Policies are limits as set by operators.
type Policies struct {
	Settings  ratelimit.Settings          // with the policies of clients
	Tiers     map[string]ratelimit.Policy // by name
	TierOf    map[string]string           // by client; each of these clients has a policy
	Overrides []Override
}

// Override has the limits of one user of a client.
type Override struct {
	ClientID, Username string
	User               []ratelimit.Limit
}

// Compile prepares the policies for decisions. The error has every problem as [fielderr.Errors].
func (p *Policies) Compile() (*ratelimit.Compiled, error) {
	e := (&ratelimit.Compiled{}).Edit()
	errs := fielderr.Of(e.SetCommon(p.Settings))
	for _, name := range slices.Sorted(maps.Keys(p.Tiers)) {
		t := p.Tiers[name]
		errs = append(errs, fielderr.Of(e.SetTier(name, &t))...)
	}
	for _, id := range slices.Sorted(maps.Keys(p.Settings.Clients)) {
		own := p.Settings.Clients[id]
		errs = append(errs, fielderr.Of(e.SetPolicy(id, &own, p.TierOf[id]))...)
	}
	for i := range p.Overrides {
		o := &p.Overrides[i]
		errs = append(errs, fielderr.Of(e.SetOverride(o.ClientID, o.Username, o.User))...)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return e.Compiled(), nil
}

// Enforced returns the policies with every limit enforced that is in dry-run, or outside the canary
// share. Limits that are off stay off.
func (p Policies) Enforced() Policies {
	enforced := func(m ratelimit.Mode) ratelimit.Mode {
		if m == ratelimit.DryRun {
			return ratelimit.Enforce
		}
		return m
	}
	s := p.Settings
	s.Mode, s.Instance, s.CanaryPercent = enforced(s.Mode), enforced(s.Instance), 100
	p.Settings = s
	return p.each(func(own *ratelimit.Policy) { own.Mode = enforced(own.Mode) })
}

// each returns a copy with change applied to every tier and every client policy.
func (p Policies) each(change func(*ratelimit.Policy)) Policies {
	for _, all := range []*map[string]ratelimit.Policy{&p.Settings.Clients, &p.Tiers} {
		changed := make(map[string]ratelimit.Policy, len(*all))
		for name, own := range *all {
			change(&own)
			changed[name] = own
		}
		*all = changed
	}
	return p
}

// With returns a copy with the lists of the trial as the lists for all clients. Lists that the
// trial lacks stay.
func (p Policies) With(t *Trial) Policies {
	d := &p.Settings.Default
	for _, list := range []struct{ into, of *[]ratelimit.Limit }{{&d.User, &t.User}, {&d.Client, &t.Client}, {&d.Total, &t.Total}} {
		if len(*list.of) > 0 {
			*list.into = *list.of
		}
	}
	return p
}

// alone returns a copy in which only the limit denies requests, for users and for clients. Clients
// with lists of their own keep them.
func (p Policies) alone(l *ratelimit.Limit) Policies {
	s := ratelimit.DefaultSettings()
	s.Clients = p.Settings.Clients
	one := TrialOf("", *l)
	p.Settings, p.Overrides = s, nil
	return p.With(&one).each(func(own *ratelimit.Policy) {
		*own = ratelimit.Policy{User: own.User, Client: own.Client, Trusted: own.Trusted, Mode: own.Mode}
	}).Enforced()
}

// Trial has limits that are tried as the limits of all clients.
type Trial struct {
	Name                string // as reported
	User, Client, Total []ratelimit.Limit
}

// add adds the limits of another trial to the lists.
func (t *Trial) add(o Trial) {
	if t.Name != "" {
		t.Name += " and "
	}
	t.Name += o.Name
	t.User, t.Client = append(t.User, o.User...), append(t.Client, o.Client...)
}

// TrialOf returns the trial of one limit, for each user of a client, and for the client itself unless the limit is for
// certain grants.
func TrialOf(name string, l ratelimit.Limit) Trial {
	t := Trial{Name: name, User: []ratelimit.Limit{l}}
	if l.Grants == 0 {
		t.Client = []ratelimit.Limit{l}
	}
	return t
}
