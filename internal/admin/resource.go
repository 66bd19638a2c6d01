package admin

import (
	"context"
	"slices"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict"
)

// state is a resource in a snapshot.
type state struct {
	doc     any   // what can be changed, as it is shown
	exists  bool  // it was set over the API
	version int64 // of its last change
}

// resource is what operators read and change: the settings, a policy or a candidate. Its
// methods read a snapshot and change nothing.
type resource interface {
	// target is its name in the audit trail.
	target() string
	state(p *clientcfg.PolicySnapshot) state
	// base is what a merge patch applies to.
	base(p *clientcfg.PolicySnapshot) any
	// with returns the set in which the resource is v, or is removed if v is nil. Errors:
	// [fielderr.Errors], *problemError.
	with(p *clientcfg.PolicySnapshot, v *strict.Value, now time.Time) (clientcfg.PolicySet, error)
	// view is the answer to a reader: the document with what is only for reading.
	view(ctx context.Context, s *Server, p *clientcfg.PolicySnapshot) any
}

// settingsResource is the settings for all clients.
type settingsResource struct{}

func (settingsResource) target() string { return "settings" }

func (settingsResource) state(p *clientcfg.PolicySnapshot) state {
	o := p.Set().Settings
	return state{doc: showSettings(p), exists: true, version: o.Changed}
}

func (settingsResource) base(p *clientcfg.PolicySnapshot) any {
	return setByOperators(p.Set().Settings)
}

func (settingsResource) with(p *clientcfg.PolicySnapshot, v *strict.Value, _ time.Time) (set clientcfg.PolicySet, err error) {
	set = p.Set()
	set.Settings = clientcfg.SettingsOverride{}
	if v != nil {
		set.Settings, err = readSettings(v)
	}
	set.Settings.Changed = p.Version() + 1
	return set, err
}

func (settingsResource) view(_ context.Context, _ *Server, p *clientcfg.PolicySnapshot) any {
	set := p.Set()
	changed, _ := set.Changed()
	view := adminapi.SettingsView{Settings: showSettings(p)}
	view.Meta.Version, view.Meta.Changed = set.Settings.Changed, append([]string{}, changed...)
	return view
}

// policyResource is the policy of one client.
type policyResource struct{ clientID string }

func (r policyResource) target() string { return "policies/" + r.clientID }

func (r policyResource) state(p *clientcfg.PolicySnapshot) state {
	own, changed := p.Policy(r.clientID)
	return state{doc: showPolicy(r.clientID, own), exists: changed, version: own.Changed}
}

func (r policyResource) base(p *clientcfg.PolicySnapshot) any { return r.state(p).doc }

func (r policyResource) with(p *clientcfg.PolicySnapshot, v *strict.Value, _ time.Time) (clientcfg.PolicySet, error) {
	if v == nil {
		return p.Set().WithPolicy(r.clientID, nil), nil
	}
	own, err := readPolicy(r.clientID, v)
	own.Changed = p.Version() + 1
	return p.Set().WithPolicy(r.clientID, &own), err
}

func (r policyResource) view(_ context.Context, _ *Server, p *clientcfg.PolicySnapshot) any {
	return r.show(p)
}

func (r policyResource) show(p *clientcfg.PolicySnapshot) adminapi.PolicyView {
	own, _ := p.Policy(r.clientID)
	view := adminapi.PolicyView{Policy: showPolicy(r.clientID, own), Effective: adminapi.ShowEffective(p.For(r.clientID))}
	view.Meta.Version, view.Meta.Source = own.Changed, source(p, r.clientID)
	return view
}

// source is where a client's policy comes from: api, file or none.
func source(p *clientcfg.PolicySnapshot, clientID string) string {
	if _, changed := p.Policy(clientID); changed {
		return "api"
	}
	if _, inFile := p.Base().Clients[clientID]; inFile {
		return "file"
	}
	return "none"
}

// candidateResource is the candidate of one client, or that for the default limits.
type candidateResource struct{ name string }

func (r candidateResource) target() string { return "candidates/" + r.name }

func (r candidateResource) state(p *clientcfg.PolicySnapshot) state {
	c, ok := p.Set().Candidates[r.name]
	return state{doc: showCandidate(r.name, c), exists: ok, version: c.Changed}
}

func (r candidateResource) base(p *clientcfg.PolicySnapshot) any { return r.state(p).doc }

// with keeps Since if the limits of the candidate stay.
func (r candidateResource) with(p *clientcfg.PolicySnapshot, v *strict.Value, now time.Time) (clientcfg.PolicySet, error) {
	if v == nil {
		return p.Set().WithCandidate(r.name, nil), nil
	}
	c, err := readCandidate(r.name, v)
	before, ok := p.Set().Candidates[r.name]
	c.Since, c.Changed = now, p.Version()+1
	if ok && slices.Equal(before.User, c.User) && slices.Equal(before.Client, c.Client) {
		c.Since = before.Since
	}
	return p.Set().WithCandidate(r.name, &c), err
}

func (r candidateResource) view(ctx context.Context, s *Server, p *clientcfg.PolicySnapshot) any {
	return r.show(ctx, s, p)
}

func (r candidateResource) show(ctx context.Context, s *Server, p *clientcfg.PolicySnapshot) adminapi.CandidateView {
	c := p.Set().Candidates[r.name]
	view := adminapi.CandidateView{Candidate: showCandidate(r.name, c), Since: c.Since, Activity: s.activityOf(ctx, r.name)}
	view.Meta.Version = c.Changed
	return view
}
