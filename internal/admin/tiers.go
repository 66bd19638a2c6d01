package admin

import (
	"context"
	"iter"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict"
)

// tierResource is a tier.
type tierResource struct{ name string }

func (r tierResource) target() string { return clientcfg.TierTarget(r.name) }

func (r tierResource) state(p *clientcfg.PolicySnapshot) state {
	t, ok := p.Set().Tiers.Get(r.name)
	return state{doc: showTier(r.name, t), exists: ok, version: t.Changed}
}

func (r tierResource) base(p *clientcfg.PolicySnapshot) any { return r.state(p).doc }

func (r tierResource) with(_ *clientcfg.PolicySnapshot, v *strict.Value, _ time.Time) ([]clientcfg.Change, error) {
	if v == nil {
		return one(clientcfg.ChangeTier(r.name, nil))
	}
	t, err := adminapi.ReadTier(r.name, v)
	if err != nil {
		return nil, err
	}
	return one(clientcfg.ChangeTier(r.name, &t))
}

func (r tierResource) view(_ context.Context, _ *Server, p *clientcfg.PolicySnapshot) any {
	set := p.Set()
	return r.show(p, set.TierUses())
}

// show returns the view, given how many clients have each tier.
func (r tierResource) show(p *clientcfg.PolicySnapshot, uses map[string]int) adminapi.TierView {
	t, _ := p.Set().Tiers.Get(r.name)
	view := adminapi.TierView{Tier: showTier(r.name, t), Clients: uses[r.name]}
	view.Meta.Version, view.Meta.Until = t.Changed, until(p, r.target())
	return view
}

func (r tierResource) absent() *problemError {
	return notFound("there is no tier %q; to make one, PUT it with If-None-Match: *", r.name)
}

func showTier(name string, t clientcfg.Tier) adminapi.Tier {
	return adminapi.Tier{
		Name: name, Mode: string(t.Mode), User: adminapi.ShowLimits(t.User), Client: adminapi.ShowLimits(t.Client), Total: adminapi.ShowLimits(t.Total), Source: adminapi.ShowLimits(t.Source),
		OverLimit: string(t.OverLimit), Ban: t.Ban, Criticality: t.Criticality.String(), HideHeaders: t.HideHeaders, Note: t.Note,
		Waits: adminapi.ShowWaits(t.MaxWait, t.MaxWaiting),
	}
}

func (s *Server) onTier(f func(*call, resource) error) handler {
	return func(c *call) error {
		name, err := c.name("name", clientcfg.MaxTierNameLength)
		if err != nil {
			return err
		}
		return f(c, tierResource{name})
	}
}

// listTiers returns a page of the tiers.
func (s *Server) listTiers(c *call) error {
	p := s.policies(c)
	set := p.Set()
	names, next, err := c.page(set.Tiers.Keys())
	if err != nil {
		return err
	}
	out := adminapi.Tiers{Version: p.Version(), LeftOut: p.LeftOut(), Tiers: make([]adminapi.TierView, len(names)), Next: next}
	uses := set.TierUses()
	for i, name := range names {
		out.Tiers[i] = tierResource{name}.show(p, uses)
	}
	return c.answer(out)
}

// withoutPrefix yields the keys that start with a prefix, with the prefix removed.
func withoutPrefix(prefix string, keys iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range keys {
			if rest, is := strings.CutPrefix(key, prefix); is && !yield(rest) {
				return
			}
		}
	}
}
