package admin

import (
	"context"
	"iter"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/preset"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
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

// overrideResource is the limits of one user of one client. username is the one in the keys of the
// counters.
type overrideResource struct{ clientID, username string }

func (r overrideResource) target() string { return clientcfg.OverrideTarget(r.clientID, r.username) }

func (r overrideResource) get(p *clientcfg.PolicySnapshot) (clientcfg.Override, bool) {
	return p.Set().Overrides.Get(clientcfg.OverrideKey(r.clientID, r.username))
}

func (r overrideResource) state(p *clientcfg.PolicySnapshot) state {
	o, ok := r.get(p)
	return state{doc: r.document(o), exists: ok, version: o.Changed}
}

func (r overrideResource) base(p *clientcfg.PolicySnapshot) any { return r.state(p).doc }

func (r overrideResource) with(_ *clientcfg.PolicySnapshot, v *strict.Value, _ time.Time) ([]clientcfg.Change, error) {
	if v == nil {
		return one(clientcfg.ChangeOverride(r.clientID, r.username, nil))
	}
	o, err := adminapi.ReadOverride(r.clientID, r.username, v)
	if err != nil {
		return nil, err
	}
	return one(clientcfg.ChangeOverride(r.clientID, r.username, &o))
}

func (r overrideResource) view(_ context.Context, _ *Server, p *clientcfg.PolicySnapshot) any {
	return r.show(p)
}

func (r overrideResource) show(p *clientcfg.PolicySnapshot) adminapi.OverrideView {
	o, _ := r.get(p)
	view := adminapi.OverrideView{Override: r.document(o)}
	view.Meta.Version, view.Meta.Until = o.Changed, until(p, r.target())
	return view
}

func (r overrideResource) absent() *problemError {
	return notFound("the user %q has no limits of its own at the client %q", r.username, r.clientID)
}

func (r overrideResource) document(o clientcfg.Override) adminapi.Override {
	return adminapi.Override{ClientID: r.clientID, Username: r.username, User: adminapi.ShowLimits(o.User), Note: o.Note}
}

// onOverride accepts the clients that onPolicy accepts, and every valid username, because the user
// may be created later.
func (s *Server) onOverride(f func(*call, resource) error) handler {
	return func(c *call) error {
		name, err := c.name("username", username.MaxLength)
		if err != nil {
			return err
		}
		return s.onPolicy(func(c *call, r resource) error {
			o, err := override(r.(policyResource).clientID, name) //nolint:forcetypeassert // onPolicy passes nothing else
			if err != nil {
				return err
			}
			return f(c, o)
		})(c)
	}
}

// override returns the override of a user, with the name in any spelling.
func override(clientID, typed string) (overrideResource, error) {
	name := username.Stored(typed)
	if err := username.Check(name); err != nil {
		return overrideResource{}, fielderr.Errors{{Path: "username", Message: strings.TrimPrefix(err.Error(), "username: ")}}
	}
	return overrideResource{clientID, name}, nil
}

// listOverrides returns a page of a client's overrides.
func (s *Server) listOverrides(c *call, r resource) error {
	id := r.(policyResource).clientID //nolint:forcetypeassert // onPolicy passes nothing else
	p := s.policies(c)
	names, next, err := c.page(withoutPrefix(clientcfg.OverrideKey(id, ""), p.Set().Overrides.Keys()))
	if err != nil {
		return err
	}
	out := adminapi.Overrides{
		ClientID: id, Version: p.Version(), LeftOut: p.LeftOut(), Overrides: make([]adminapi.OverrideView, len(names)), Next: next,
	}
	for i, name := range names {
		out.Overrides[i] = overrideResource{id, name}.show(p)
	}
	return c.answer(out)
}

// listPresets returns the named limits of this release.
func (s *Server) listPresets(c *call) error {
	out := adminapi.Presets{Presets: []adminapi.Preset{}}
	for _, p := range preset.All() {
		out.Presets = append(out.Presets, adminapi.Preset{
			Name: p.Name, User: adminapi.ShowLimits(p.User), Client: adminapi.ShowLimits(p.Client), Total: adminapi.ShowLimits(p.Total),
			About: p.About, Page: p.Page,
		})
	}
	return c.answer(out)
}
