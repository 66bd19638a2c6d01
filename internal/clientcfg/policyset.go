package clientcfg

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/cowmap"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
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
	Clients    cowmap.Map[ClientPolicy]
	Candidates cowmap.Map[Candidate]
	Tiers      cowmap.Map[Tier]
	Overrides  cowmap.Map[Override]  // by OverrideKey
	Temporary  cowmap.Map[Temporary] // values that the maps above have for now, by target
}

// SettingsOverride holds the operators' changes to the settings for all clients. A nil field comes
// from the configuration file.
type SettingsOverride struct {
	Mode          *ratelimit.Mode        `json:"mode,omitempty"`
	CanaryPercent *float64               `json:"canary_percent,omitempty"`
	User          []ratelimit.Limit      `json:"user,omitempty"`
	Client        []ratelimit.Limit      `json:"client,omitempty"`
	Total         []ratelimit.Limit      `json:"total,omitempty"`
	Source        []ratelimit.Limit      `json:"source,omitempty"`
	OverLimit     *ratelimit.OverLimit   `json:"over_limit,omitempty"`
	MaxWait       *ratelimit.MaxWait     `json:"max_wait,omitempty"` // set together with MaxWaiting
	MaxWaiting    *int                   `json:"max_waiting,omitempty"`
	Ban           *ratelimit.Ban         `json:"ban,omitempty"`
	Criticality   *ratelimit.Criticality `json:"criticality,omitempty"`
	HideHeaders   *bool                  `json:"hide_headers,omitempty"`
	Note          string                 `json:"note,omitempty"`
	Changed       int64                  `json:"-"` // version of the last change
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
// requests over its limits, the setting in force applies.
type Candidate struct {
	User       []ratelimit.Limit   `json:"user,omitempty"`
	Client     []ratelimit.Limit   `json:"client,omitempty"`
	Total      []ratelimit.Limit   `json:"total,omitempty"`
	Source     []ratelimit.Limit   `json:"source,omitempty"`
	OverLimit  ratelimit.OverLimit `json:"over_limit,omitempty"`
	MaxWait    *ratelimit.MaxWait  `json:"max_wait,omitempty"` // set together with MaxWaiting
	MaxWaiting *int                `json:"max_waiting,omitempty"`
	Ban        *ratelimit.Ban      `json:"ban,omitempty"`
	// Criticality is not tried. It takes effect with the limits when the candidate becomes live.
	Criticality ratelimit.Criticality `json:"criticality,omitempty"`
	Note        string                `json:"note,omitempty"`
	Since       time.Time             `json:"since"`
	Changed     int64                 `json:"-"` // as above
}

// Policy returns the policy on trial.
func (c *Candidate) Policy() ratelimit.Policy {
	return ratelimit.Policy{
		User: c.User, Client: c.Client, Total: c.Total, Source: c.Source,
		OverLimit: c.OverLimit, MaxWait: c.MaxWait, MaxWaiting: c.MaxWaiting, Ban: c.Ban,
	}
}

// Reset is a command to forget counts on all instances.
type Reset struct {
	Version  int64 // of its entry
	ClientID string
	Username *string // nil for all keys of the client
	At       time.Time
}

// WithPolicy returns a copy in which the client has the policy p. A nil p means the policy of the
// configuration file.
func (s PolicySet) WithPolicy(clientID string, p *ClientPolicy) PolicySet {
	s.Clients = with(s.Clients, clientID, p)
	return s
}

// WithCandidate returns a copy with that candidate, or without it if c is nil.
func (s PolicySet) WithCandidate(name string, c *Candidate) PolicySet {
	s.Candidates = with(s.Candidates, name, c)
	return s
}

// WithTier returns a copy with that tier, or without it if t is nil.
func (s PolicySet) WithTier(name string, t *Tier) PolicySet {
	s.Tiers = with(s.Tiers, name, t)
	return s
}

// WithOverride returns a copy with that override, or without it if o is nil.
func (s PolicySet) WithOverride(clientID, username string, o *Override) PolicySet {
	s.Overrides = with(s.Overrides, OverrideKey(clientID, username), o)
	return s
}

func with[V any](m cowmap.Map[V], key string, v *V) cowmap.Map[V] {
	e := m.Edit()
	give(e, key, v)
	return e.Map()
}

// Over returns base with the changed settings, without policies of single clients.
func (o *SettingsOverride) Over(base ratelimit.Settings) ratelimit.Settings {
	out := base
	if o.Mode != nil {
		out.Mode = *o.Mode
	}
	if o.CanaryPercent != nil {
		out.CanaryPercent = *o.CanaryPercent
	}
	if o.User != nil {
		out.Default.User = o.User
	}
	if o.Client != nil {
		out.Default.Client = o.Client
	}
	if o.Total != nil {
		out.Default.Total = o.Total
	}
	if o.Source != nil {
		out.Default.Source = o.Source
	}
	if o.OverLimit != nil {
		out.Default.OverLimit = *o.OverLimit
	}
	if o.MaxWait != nil {
		out.Default.MaxWait, out.Default.MaxWaiting = o.MaxWait, o.MaxWaiting
	}
	if o.Ban != nil {
		out.Default.Ban = o.Ban
	}
	if o.Criticality != nil {
		out.Default.Criticality = *o.Criticality
	}
	if o.HideHeaders != nil {
		out.Default.HideHeaders = *o.HideHeaders
	}
	out.Clients = nil
	return out
}

// Names returns the names of the changed settings.
func (o *SettingsOverride) Names() (names []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"mode", o.Mode != nil},
		{"canary_percent", o.CanaryPercent != nil},
		{"default.user", o.User != nil},
		{"default.client", o.Client != nil},
		{"default.total", o.Total != nil},
		{"default.source", o.Source != nil},
		{"default.over_limit", o.OverLimit != nil},
		{"default.max_wait", o.MaxWait != nil},
		{"default.max_waiting", o.MaxWaiting != nil},
		{"default.ban", o.Ban != nil},
		{"default.criticality", o.Criticality != nil},
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
	out := ratelimit.Settings{Mode: ratelimit.DryRun, CanaryPercent: 100, Default: c.Policy()}
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
		es.Add("clients", "%d policies are more than %d", n, MaxPolicies)
	}
	if n := s.Candidates.Len(); n > MaxCandidates {
		es.Add("candidates", "%d candidates are more than %d", n, MaxCandidates)
	}
	if n := s.Tiers.Len(); n > MaxTiers {
		es.Add("tiers", "%d tiers are more than %d", n, MaxTiers)
	}
	if n := s.Overrides.Len(); n > MaxOverrides {
		es.Add("overrides", "%d overrides are more than %d", n, MaxOverrides)
	}
	return es
}

// ValidateNote returns an error if a text is not allowed as a note or a reason.
func ValidateNote(text string) error {
	switch {
	case len(text) > MaxNoteLength:
		return fmt.Errorf("%d bytes are more than %d", len(text), MaxNoteLength)
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
