package ratelimit

import (
	"oauth-server/internal/cowmap"
	"oauth-server/internal/fielderr"
)

// tier is a named policy that the policies of clients refer to, compiled once for all of them.
type tier struct {
	Policy
	lists // nil: those for all clients
	ban   *BanRule
	name  string
	bare  *own // of all clients that have nothing but this tier; it stays when the tier changes
}

// noTier is the tier of those that name none, or one that is not there.
var noTier = &tier{}

// SetTier makes a tier, or removes it if p is nil. An error has the problems of the policy, by their paths,
// and changes nothing. What it costs does not depend on how many clients have the tier.
func (e *CompiledEdit) SetTier(name string, p *Policy) error {
	if p != nil {
		errs := p.validate()
		if p.Trusted {
			errs.Add("trusted", "a tier cannot be trusted")
		}
		if len(errs) > 0 {
			return errs.Under(fielderr.Join("tiers", name)).Err()
		}
	}
	if e.tiers == nil {
		e.tiers = e.tiersBefore().Edit()
	}
	if p == nil {
		e.tiers.Delete(name)
		return nil
	}
	t := &tier{Policy: *p, lists: p.compiled(), ban: compileBan(p.Ban), name: name}
	if was, ok := e.tiers.Get(name); ok {
		t.bare = was.bare
	} else {
		t.bare = &own{given: given{policy: true, tier: name, shared: true}}
	}
	e.tiers.Set(name, t)
	return nil
}

// bare returns what a client with nothing but a tier shares with all others of that kind; nil if it has
// something else, or the tier is not there.
func (e *CompiledEdit) bare(g *given) *own {
	if !g.policy || g.tier == "" || g.overrides != nil || g.lists != (lists{}) ||
		g.Trusted || g.HideHeaders || g.Mode != Unset || g.OverLimit != "" || g.MaxWait != nil || g.Ban != nil || g.Criticality != CriticalityUnset {
		return nil
	}
	var t *tier
	if e.tiers != nil {
		t, _ = e.tiers.Get(g.tier)
	} else {
		t, _ = e.tiersBefore().Get(g.tier)
	}
	if t == nil {
		return nil
	}
	return t.bare
}

// tiersBefore are the tiers before any change of this edit.
func (e *CompiledEdit) tiersBefore() (none cowmap.Map[*tier]) {
	if e.all == nil {
		return none
	}
	return e.all.tiers
}
