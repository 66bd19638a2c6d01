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
		var before Map[*tier]
		if e.all != nil {
			before = e.all.tiers
		}
		e.tiers = before.Edit()
	}
	if p == nil {
		e.tiers.Delete(name)
		return nil
	}
	e.tiers.Set(name, &tier{Policy: *p, lists: p.compiled(), ban: compileBan(p.Ban), name: name})
	return nil
}
