package ratelimit

import (
	"oauth-server/internal/strict/fielderr"
)

// tier is a named policy that the policies of clients refer to. It is compiled once for all of
// them.
type tier struct {
	Policy
	lists // nil: the lists for all clients apply
	ban   *BanRule
	name  string
	bare  *own // shared by all clients that have only this tier; kept when the tier changes
}

// noTier is the tier of clients that name none, or name one that does not exist.
var noTier = &tier{}

// SetTier sets a tier, or removes it if p is nil. If p is invalid, SetTier returns its problems as
// [fielderr.Errors], with their paths, and changes nothing. Its cost does not depend on how many
// clients have the tier.
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

// bare returns the own that all clients with only this tier share. It returns nil if the client has
// anything else, or if the tier does not exist.
func (e *CompiledEdit) bare(g *given) *own {
	if !g.policy || g.tier == "" || g.overrides != nil || g.lists != (lists{}) ||
		g.Trusted || g.HideHeaders != nil || g.Mode != Unset || g.OverLimit != "" || g.MaxWait != nil || g.Ban != nil || g.Criticality != CriticalityUnset {
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

// tiersBefore returns the tiers before any change of this edit.
func (e *CompiledEdit) tiersBefore() (none Map[*tier]) {
	if e.all == nil {
		return none
	}
	return e.all.tiers
}
