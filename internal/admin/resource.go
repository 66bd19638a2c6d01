package admin

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
)

// resource is something that operators read and change: the settings, a policy or a candidate. Its
// methods read a snapshot and change nothing.
type resource interface {
	// target returns its name in the audit trail.
	target() string
	state(p *clientcfg.PolicySnapshot) state
	// base returns the document that a merge patch applies to.
	base(p *clientcfg.PolicySnapshot) any
	// with returns the changes that set the resource to v, or remove it if v is nil. Errors:
	// [fielderr.Errors], *problemError.
	with(p *clientcfg.PolicySnapshot, v *strict.Value, now time.Time) ([]clientcfg.Change, error)
	// view returns the response for a reader: the document with its read-only fields.
	view(ctx context.Context, s *Server, p *clientcfg.PolicySnapshot) any
}

// deletable is a resource that exists only if it was created through this API.
type deletable interface {
	// absent returns the problem for a reader if it does not exist.
	absent() *problemError
}

// settingsResource is the settings for all clients.
type settingsResource struct{}

func (settingsResource) target() string { return clientcfg.SettingsTarget }

func (settingsResource) state(p *clientcfg.PolicySnapshot) state {
	o := p.Set().Settings
	return state{doc: showSettings(p), exists: true, version: o.Changed}
}

func (settingsResource) base(p *clientcfg.PolicySnapshot) any {
	return adminapi.SetByOperators(p.Set().Settings)
}

func (settingsResource) with(_ *clientcfg.PolicySnapshot, v *strict.Value, _ time.Time) ([]clientcfg.Change, error) {
	var o clientcfg.SettingsOverride
	if v != nil {
		var err error
		if o, err = adminapi.ReadSettings(v); err != nil {
			return nil, err
		}
	}
	return one(clientcfg.ChangeSettings(o))
}

// one returns a list with one change.
func one(c clientcfg.Change, err error) ([]clientcfg.Change, error) {
	return []clientcfg.Change{c}, err
}

func (settingsResource) view(_ context.Context, _ *Server, p *clientcfg.PolicySnapshot) any {
	o := p.Set().Settings
	view := adminapi.SettingsView{Settings: showSettings(p)}
	view.Meta.Version, view.Meta.Changed, view.Meta.Until = o.Changed, append([]string{}, o.Names()...), until(p, clientcfg.SettingsTarget)
	return view
}

// policyResource is the policy of one client.
type policyResource struct{ clientID string }

func (r policyResource) target() string { return clientcfg.PolicyTarget(r.clientID) }

func (r policyResource) state(p *clientcfg.PolicySnapshot) state {
	own, changed := p.Policy(r.clientID)
	return state{doc: showPolicy(r.clientID, own), exists: changed, version: own.Changed}
}

func (r policyResource) base(p *clientcfg.PolicySnapshot) any { return r.state(p).doc }

func (r policyResource) with(_ *clientcfg.PolicySnapshot, v *strict.Value, _ time.Time) ([]clientcfg.Change, error) {
	if v == nil {
		return one(clientcfg.ChangePolicy(r.clientID, nil))
	}
	own, err := adminapi.ReadPolicy(r.clientID, v)
	if err != nil {
		return nil, err
	}
	return one(clientcfg.ChangePolicy(r.clientID, &own))
}

func (r policyResource) view(_ context.Context, _ *Server, p *clientcfg.PolicySnapshot) any {
	return r.show(p)
}

func (r policyResource) show(p *clientcfg.PolicySnapshot) adminapi.PolicyView {
	own, _ := p.Policy(r.clientID)
	view := adminapi.PolicyView{Policy: showPolicy(r.clientID, own), Effective: adminapi.ShowEffective(p.For(r.clientID))}
	view.Meta.Version, view.Meta.Source, view.Meta.Until = own.Changed, source(p, r.clientID), until(p, r.target())
	return view
}

// until returns when a target's temporary value ends, or zero for a permanent one.
func until(p *clientcfg.PolicySnapshot, target string) time.Time {
	t, _ := p.Temporary(target)
	return t.Until
}

// source returns the origin of a client's policy: api, file or none.
func source(p *clientcfg.PolicySnapshot, clientID string) string {
	if _, changed := p.Policy(clientID); changed {
		return "api"
	}
	if _, inFile := p.Base().Clients[clientID]; inFile {
		return "file"
	}
	return "none"
}

// candidateResource is the candidate for one client or for the default limits.
type candidateResource struct{ name string }

func (r candidateResource) target() string { return clientcfg.CandidateTarget(r.name) }

func (r candidateResource) state(p *clientcfg.PolicySnapshot) state {
	c, ok := p.Set().Candidates.Get(r.name)
	return state{doc: showCandidate(r.name, c), exists: ok, version: c.Changed}
}

func (r candidateResource) base(p *clientcfg.PolicySnapshot) any { return r.state(p).doc }

// with keeps Since if the tried limits stay the same.
func (r candidateResource) with(p *clientcfg.PolicySnapshot, v *strict.Value, now time.Time) ([]clientcfg.Change, error) {
	if v == nil {
		return one(clientcfg.ChangeCandidate(r.name, nil))
	}
	c, err := adminapi.ReadCandidate(r.name, v)
	if err != nil {
		return nil, err
	}
	before, ok := p.Set().Candidates.Get(r.name)
	c.Since = now
	if ok && reflect.DeepEqual(before.Tried(), c.Tried()) {
		c.Since = before.Since
	}
	return one(clientcfg.ChangeCandidate(r.name, &c))
}

func (r candidateResource) absent() *problemError {
	return notFound("there is no candidate; to make one, PUT it with If-None-Match: *")
}

func (r candidateResource) view(ctx context.Context, s *Server, p *clientcfg.PolicySnapshot) any {
	return r.show(ctx, s, p)
}

func (r candidateResource) show(ctx context.Context, s *Server, p *clientcfg.PolicySnapshot) adminapi.CandidateView {
	c, _ := p.Set().Candidates.Get(r.name)
	view := adminapi.CandidateView{Candidate: showCandidate(r.name, c), Since: c.Since, Activity: s.activityOf(ctx, r.name, c.Since)}
	view.Meta.Version, view.Meta.Until = c.Changed, until(p, r.target())
	return view
}

// Conversions from stored values to the documents for operators.

func showSettings(p *clientcfg.PolicySnapshot) adminapi.Settings {
	s := p.Settings()
	mode := s.Mode
	if mode == ratelimit.Unset {
		mode = ratelimit.Enforce
	}
	return adminapi.Settings{
		Mode: string(mode), CanaryPercent: s.CanaryPercent, Note: p.Set().Settings.Note,
		Default: adminapi.Default{
			User: adminapi.ShowLimits(s.Default.User), Client: adminapi.ShowLimits(s.Default.Client), Total: adminapi.ShowLimits(s.Default.Total), Source: adminapi.ShowLimits(s.Default.Source),
			OverLimit: string(cmp.Or(s.Default.OverLimit, ratelimit.OverLimitDeny)), Ban: s.Default.Ban, HideHeaders: s.Default.HideHeaders,
			Criticality: s.Default.Criticality.String(),
			Waits:       adminapi.ShowWaits(s.Default.MaxWait, s.Default.MaxWaiting),
		},
	}
}

func showPolicy(clientID string, p clientcfg.ClientPolicy) adminapi.Policy {
	return adminapi.Policy{
		ClientID: clientID, Trusted: p.Trusted, Tier: p.Tier, Mode: string(p.Mode),
		User: adminapi.ShowLimits(p.User), Client: adminapi.ShowLimits(p.Client), Total: adminapi.ShowLimits(p.Total), Source: adminapi.ShowLimits(p.Source),
		OverLimit: string(p.OverLimit), Ban: p.Ban, Criticality: p.Criticality.String(), HideHeaders: p.HideHeaders, Note: p.Note,
		Waits: adminapi.ShowWaits(p.MaxWait, p.MaxWaiting),
	}
}

func showCandidate(name string, c clientcfg.Candidate) adminapi.Candidate {
	return adminapi.Candidate{
		ClientID: name, User: adminapi.ShowLimits(c.User), Client: adminapi.ShowLimits(c.Client),
		Total: adminapi.ShowLimits(c.Total), Source: adminapi.ShowLimits(c.Source),
		OverLimit: string(c.OverLimit), Waits: adminapi.ShowWaits(c.MaxWait, c.MaxWaiting), Ban: c.Ban,
		Criticality: c.Criticality.String(), Note: c.Note,
	}
}
