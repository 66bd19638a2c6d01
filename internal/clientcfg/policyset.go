package clientcfg

import (
	"cmp"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// Limits on stored changes of operators.
const (
	MaxPolicies   = 100_000  // clients with their own policy
	MaxCandidates = 1_000    // clients with a candidate
	MaxTargetSize = 12 << 10 // bytes of a target's JSON value; the longest valid one is shorter
	MaxEntrySize  = 1 << 20  // bytes of a trail entry as JSON
	MaxNoteLength = 500      // bytes of a note or a reason
)

// GlobalCandidate is the name of the candidate for the default limits. Other candidates are named
// by their client_id.
const GlobalCandidate = "_default"

// PolicySet is the sum of the operators' runtime changes: all trail entries up to its Version.
// Anything not set here comes from the configuration file.
//
// A shared set is never modified. The With… methods return modified copies, which share everything
// unchanged.
type PolicySet struct {
	// Version is the version of the last entry, or 0 if there never was one.
	Version    int64
	Settings   SettingsOverride
	Clients    ratelimit.Map[ClientPolicy]
	Candidates ratelimit.Map[Candidate]
	Tiers      ratelimit.Map[Tier]
	Overrides  ratelimit.Map[Override]  // by OverrideKey
	Temporary  ratelimit.Map[Temporary] // values that the maps above have for now, by target

	uses map[string]int // see TierUses
}

// SettingsOverride holds the operators' changes to the settings for all clients. Values that it does
// not set come from the configuration file.
type SettingsOverride struct {
	ratelimit.Policy          // the limits of all clients, and Mode; without trust
	CanaryPercent    *float64 `json:"canary_percent,omitempty"`
	HideHeaders      *bool    `json:"hide_headers,omitempty"` // in place of that of Policy
	Note             string   `json:"note,omitempty"`
	Changed          int64    `json:"-"` // version of the last change
}

// ClientPolicy replaces the file's policy of one client.
type ClientPolicy struct {
	ratelimit.Policy
	Tier    string `json:"tier,omitempty"` // supplies values that the policy does not set; empty for no tier
	Note    string `json:"note,omitempty"`
	Changed int64  `json:"-"` // as above
}

// Candidate is a set of limits on trial beside the live ones. Candidates have their own counters
// and are never enforced. An empty list is not tried. If the candidate does not set what happens to
// requests over its limits, the setting in force applies. Its criticality is not tried. It takes
// effect with the limits when the candidate becomes live.
type Candidate struct {
	ratelimit.Policy           // without trust, mode and HideHeaders
	Note             string    `json:"note,omitempty"`
	Since            time.Time `json:"since"`
	Changed          int64     `json:"-"` // as above
}

// Tried returns the policy on trial.
func (c *Candidate) Tried() ratelimit.Policy {
	p := c.Policy
	p.Criticality = ratelimit.CriticalityUnset
	return p
}

// Promoted returns a live policy with the values of the candidate.
func (c *Candidate) Promoted(live ratelimit.Policy) ratelimit.Policy {
	p := over(&c.Policy, live)
	p.Trusted = false
	return p
}

// over returns base with the values that p sets, except Trusted, Mode and HideHeaders.
func over(p *ratelimit.Policy, base ratelimit.Policy) ratelimit.Policy {
	if p.User != nil {
		base.User = p.User
	}
	if p.Client != nil {
		base.Client = p.Client
	}
	if p.Total != nil {
		base.Total = p.Total
	}
	if p.Source != nil {
		base.Source = p.Source
	}
	if p.MaxWait != nil {
		base.MaxWait, base.MaxWaiting = p.MaxWait, p.MaxWaiting
	}
	base.OverLimit, base.Ban = cmp.Or(p.OverLimit, base.OverLimit), cmp.Or(p.Ban, base.Ban)
	base.Criticality = cmp.Or(p.Criticality, base.Criticality)
	return base
}

// Reset is a command to forget counts on all instances.
type Reset struct {
	Version  int64 // of its entry
	ClientID string
	Username *string // nil for all keys of the client
	At       time.Time
}

// WithCandidate returns a copy with that candidate, or without it if c is nil.
func (s PolicySet) WithCandidate(name string, c *Candidate) PolicySet {
	e := s.Candidates.Edit()
	give(e, name, c)
	s.Candidates = e.Map()
	return s
}

// Over returns base with the changed settings, without policies of single clients.
func (o *SettingsOverride) Over(base ratelimit.Settings) ratelimit.Settings {
	base.Mode, base.Default, base.Clients = cmp.Or(o.Mode, base.Mode), over(&o.Policy, base.Default), nil
	if o.CanaryPercent != nil {
		base.CanaryPercent = *o.CanaryPercent
	}
	if o.HideHeaders != nil {
		base.Default.HideHeaders = *o.HideHeaders
	}
	return base
}

// Names returns the names of the changed settings.
func (o *SettingsOverride) Names() (names []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"mode", o.Mode != ratelimit.Unset},
		{"canary_percent", o.CanaryPercent != nil},
		{"default.user", o.User != nil},
		{"default.client", o.Client != nil},
		{"default.total", o.Total != nil},
		{"default.source", o.Source != nil},
		{"default.over_limit", o.OverLimit != ""},
		{"default.max_wait", o.MaxWait != nil},
		{"default.max_waiting", o.MaxWaiting != nil},
		{"default.ban", o.Ban != nil},
		{"default.criticality", o.Criticality != ratelimit.CriticalityUnset},
		{"default.hide_headers", o.HideHeaders != nil},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// trial returns the common settings for evaluating candidates, if c is the candidate for the
// default limits.
func (c *Candidate) trial(live ratelimit.Settings) ratelimit.Settings {
	out := ratelimit.Settings{Mode: ratelimit.DryRun, CanaryPercent: 100, Default: c.Tried()}
	if len(c.User) == 0 {
		out.Default.User = live.Default.User
	}
	if len(c.Client) == 0 {
		out.Default.Client = live.Default.Client
	}
	return out
}

// checkCounts reports, as [fielderr.Errors], which kinds exceed their maximum number.
func (s *PolicySet) checkCounts() (es fielderr.Errors) {
	if n := s.Clients.Len(); n > MaxPolicies {
		es.Add("clients", "%d policies exceed the maximum of %d", n, MaxPolicies)
	}
	if n := s.Candidates.Len(); n > MaxCandidates {
		es.Add("candidates", "%d candidates exceed the maximum of %d", n, MaxCandidates)
	}
	if n := s.Tiers.Len(); n > MaxTiers {
		es.Add("tiers", "%d tiers exceed the maximum of %d", n, MaxTiers)
	}
	if n := s.Overrides.Len(); n > MaxOverrides {
		es.Add("overrides", "%d overrides exceed the maximum of %d", n, MaxOverrides)
	}
	return es
}

// ValidateNote returns an error if a text is not allowed as a note or a reason.
func ValidateNote(text string) error {
	switch {
	case len(text) > MaxNoteLength:
		return fmt.Errorf("%d bytes exceed the maximum of %d", len(text), MaxNoteLength)
	case !utf8.ValidString(text):
		return fmt.Errorf("it is not UTF-8")
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%q is not a printable character", r)
		}
	}
	return nil
}
