package clientcfg

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
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
// A shared set is never modified. Modified copies share everything unchanged.
type PolicySet struct {
	// Version is the version of the last entry, or 0 if there never was one.
	Version    int64
	Settings   Value // for all clients
	Clients    ratelimit.Map[Value]
	Candidates ratelimit.Map[Value]
	Tiers      ratelimit.Map[Value]
	Overrides  ratelimit.Map[Value]     // by OverrideKey
	Temporary  ratelimit.Map[Temporary] // values that the maps above have for now, by target

	uses func() map[string]int // see TierUses
}

// Value is what operators have set for one target:
//
//   - The settings for all clients, without trust. Other values come from the configuration file.
//   - A policy, in place of the file's policy of a client. Other values come from its tier, or else
//     from the settings for all clients.
//   - A tier, without trust: a named policy that the policies of clients refer to, so it can be
//     changed in one place. Other values come from the settings for all clients.
//   - An override: User and Note. It replaces the limits of one user of one client.
//   - A candidate, without trust, Mode and HideHeaders: limits on trial beside the live ones.
//     Candidates have their own counters and are never enforced. An empty list is not tried. If the
//     candidate does not set what happens to requests over its limits, the setting in force applies.
//     Its criticality is not tried. It takes effect with the limits when the candidate becomes live.
type Value struct {
	ratelimit.Policy
	CanaryPercent *float64  `json:"canary_percent,omitempty"` // of the settings for all clients
	Tier          string    `json:"tier,omitempty"`           // of a client; empty for no tier
	Note          string    `json:"note,omitempty"`
	Since         time.Time `json:"since,omitzero"` // start of the trial of a candidate
	Changed       int64     `json:"-"`              // version of the last change
}

// fits reports whether v has only fields that the kind of target can have.
func (v *Value) fits(kind string) bool {
	rest := *v
	rest.Note, rest.Changed = "", 0
	switch kind {
	case SettingsTarget:
		rest.Policy, rest.CanaryPercent = ratelimit.Policy{Trusted: v.Trusted}, nil
	case policyTargets:
		return v.CanaryPercent == nil && v.Since.IsZero()
	case tierTargets:
		rest.Policy = ratelimit.Policy{Trusted: v.Trusted}
	case overrideTargets:
		rest.User = nil
	case candidateTargets:
		rest.Policy, rest.Since = ratelimit.Policy{Trusted: v.Trusted, Mode: v.Mode, HideHeaders: v.HideHeaders}, time.Time{}
	}
	return reflect.ValueOf(rest).IsZero()
}

// Tried returns the policy that a candidate tries.
func (v *Value) Tried() ratelimit.Policy {
	p := v.Policy
	p.Criticality = ratelimit.CriticalityUnset
	return p
}

// Promoted returns a live policy with the values of a candidate.
func (v *Value) Promoted(live ratelimit.Policy) ratelimit.Policy {
	p := over(&v.Policy, live)
	p.Trusted = false
	return p
}

// over returns base with the values that p sets, except Trusted and Mode.
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
	base.Criticality, base.HideHeaders = cmp.Or(p.Criticality, base.Criticality), cmp.Or(p.HideHeaders, base.HideHeaders)
	return base
}

// Reset is a command to forget counts on all instances.
type Reset struct {
	Version  int64 // of its entry
	ClientID string
	Username *string // nil for all keys of the client
	At       time.Time
}

// kinds returns the values by the kind of their targets, except the settings.
func (s *PolicySet) kinds() map[string]*ratelimit.Map[Value] {
	return map[string]*ratelimit.Map[Value]{
		policyTargets: &s.Clients, candidateTargets: &s.Candidates, tierTargets: &s.Tiers, overrideTargets: &s.Overrides,
	}
}

// All yields the targets with a value, except the settings, in no particular order.
func (s *PolicySet) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for kind, values := range s.kinds() {
			for name, v := range values.All() {
				if !yield(kind+name, v) {
					return
				}
			}
		}
	}
}

// Over returns base with the changed settings, without policies of single clients.
func (v *Value) Over(base ratelimit.Settings) ratelimit.Settings {
	base.Mode, base.Default, base.Clients = cmp.Or(v.Mode, base.Mode), over(&v.Policy, base.Default), nil
	if v.CanaryPercent != nil {
		base.CanaryPercent = *v.CanaryPercent
	}
	return base
}

// Names returns the names of the changed settings.
func (v *Value) Names() (names []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"mode", v.Mode != ratelimit.Unset},
		{"canary_percent", v.CanaryPercent != nil},
		{"default.user", v.User != nil},
		{"default.client", v.Client != nil},
		{"default.total", v.Total != nil},
		{"default.source", v.Source != nil},
		{"default.over_limit", v.OverLimit != ""},
		{"default.max_wait", v.MaxWait != nil},
		{"default.max_waiting", v.MaxWaiting != nil},
		{"default.ban", v.Ban != nil},
		{"default.criticality", v.Criticality != ratelimit.CriticalityUnset},
		{"default.hide_headers", v.HideHeaders != nil},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// trial returns the common settings for evaluating candidates, if v is the candidate for the default
// limits.
func (v *Value) trial(live ratelimit.Settings) ratelimit.Settings {
	out := ratelimit.Settings{Mode: ratelimit.DryRun, CanaryPercent: 100, Default: v.Tried()}
	if len(v.User) == 0 {
		out.Default.User = live.Default.User
	}
	if len(v.Client) == 0 {
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
