package admin

import (
	"context"
	"slices"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
)

// state is a resource as it stands in a snapshot.
type state struct {
	doc     any   // what can be written, as it is shown
	exists  bool  // it was made by an operator
	version int64 // of its last change
}

// resource is something that operators read and change: the settings, a policy
// or a candidate. Its methods look at a snapshot and change nothing.
type resource interface {
	// target is its name in the trail.
	target() string
	state(p *clientcfg.Policies) state
	// base is what a merge patch applies to.
	base(p *clientcfg.Policies) any
	// with returns the set in which the resource is what v says, or is
	// removed if there is no v. Errors: [fielderr.Errors], *problemError.
	with(p *clientcfg.Policies, v *strict.Value, now time.Time) (clientcfg.PolicySet, error)
	// view is what a reader gets: the document and what is only for reading.
	view(ctx context.Context, s *Server, p *clientcfg.Policies) any
}

// settingsResource is what holds for all clients.
type settingsResource struct{}

func (settingsResource) target() string { return "settings" }

func (settingsResource) state(p *clientcfg.Policies) state {
	o := p.Set().Settings
	return state{doc: showSettings(p), exists: true, version: o.Changed}
}

func (settingsResource) base(p *clientcfg.Policies) any { return setByOperators(p.Set().Settings) }

func (settingsResource) with(p *clientcfg.Policies, v *strict.Value, _ time.Time) (set clientcfg.PolicySet, err error) {
	set = p.Set()
	set.Settings = clientcfg.SettingsOverride{}
	if v != nil {
		set.Settings, err = readSettings(v)
	}
	set.Settings.Changed = p.Version() + 1
	return set, err
}

// settingsView is the settings with what is only for reading.
type settingsView struct {
	settingsDoc
	Meta settingsMeta `json:"meta"`
}

type settingsMeta struct {
	Version int64 `json:"version"`
	// Changed names the settings that were changed over the API; all others
	// are those of the configuration file.
	Changed []string `json:"changed"`
}

func (settingsResource) view(_ context.Context, _ *Server, p *clientcfg.Policies) any {
	set := p.Set()
	changed, _ := set.Changed()
	return settingsView{showSettings(p), settingsMeta{set.Settings.Changed, append([]string{}, changed...)}}
}

// policyResource is the policy of one client.
type policyResource struct{ clientID string }

func (r policyResource) target() string { return "policies/" + r.clientID }

func (r policyResource) state(p *clientcfg.Policies) state {
	own, changed := p.Policy(r.clientID)
	return state{doc: showPolicy(r.clientID, own), exists: changed, version: own.Changed}
}

func (r policyResource) base(p *clientcfg.Policies) any { return r.state(p).doc }

func (r policyResource) with(p *clientcfg.Policies, v *strict.Value, _ time.Time) (clientcfg.PolicySet, error) {
	if v == nil {
		return p.Set().WithPolicy(r.clientID, nil), nil
	}
	own, err := readPolicy(r.clientID, v)
	own.Changed = p.Version() + 1
	return p.Set().WithPolicy(r.clientID, &own), err
}

// effectiveDoc is what applies to a client, everything taken together.
type effectiveDoc struct {
	Mode        ratelimit.Mode `json:"mode"`
	Trusted     bool           `json:"trusted"`
	User        []limitDoc     `json:"user"`
	Client      []limitDoc     `json:"client"`
	HideHeaders bool           `json:"hide_headers"`
}

func showEffective(e *ratelimit.Effective) effectiveDoc {
	return effectiveDoc{e.Mode, e.Trusted, showLimits(e.User.All()), showLimits(e.Client.All()), e.HideHeaders}
}

// policyView is a policy with what is only for reading.
type policyView struct {
	policyDoc
	Effective effectiveDoc `json:"effective"`
	Meta      policyMeta   `json:"meta"`
}

type policyMeta struct {
	Version int64  `json:"version"`
	Source  string `json:"source"` // api, file or none
}

func (r policyResource) view(_ context.Context, _ *Server, p *clientcfg.Policies) any {
	own, _ := p.Policy(r.clientID)
	return policyView{showPolicy(r.clientID, own), showEffective(p.For(r.clientID)), policyMeta{own.Changed, source(p, r.clientID)}}
}

// source says where a client's policy comes from.
func source(p *clientcfg.Policies, clientID string) string {
	if _, changed := p.Policy(clientID); changed {
		return "api"
	}
	if _, inFile := p.Base().Clients[clientID]; inFile {
		return "file"
	}
	return "none"
}

// candidateResource is a candidate of one client, or of the default limits.
type candidateResource struct{ name string }

func (r candidateResource) target() string { return "candidates/" + r.name }

func (r candidateResource) state(p *clientcfg.Policies) state {
	c, ok := p.Set().Candidates[r.name]
	return state{doc: showCandidate(r.name, c), exists: ok, version: c.Changed}
}

func (r candidateResource) base(p *clientcfg.Policies) any { return r.state(p).doc }

// with keeps the time since when a candidate is tried if its limits stay.
func (r candidateResource) with(p *clientcfg.Policies, v *strict.Value, now time.Time) (clientcfg.PolicySet, error) {
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

// candidateView is a candidate with what came of it, beside the live policy.
type candidateView struct {
	candidateDoc
	Since    time.Time    `json:"since"`
	Activity activityView `json:"activity"`
	Meta     versionMeta  `json:"meta"`
}

type versionMeta struct {
	Version int64 `json:"version"`
}

func (r candidateResource) view(ctx context.Context, s *Server, p *clientcfg.Policies) any {
	c := p.Set().Candidates[r.name]
	return candidateView{showCandidate(r.name, c), c.Since, s.activityOf(ctx, r.name), versionMeta{c.Changed}}
}
