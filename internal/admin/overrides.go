package admin

import (
	"context"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/strict"
	"oauth-server/internal/username"
)

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
