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

// Bounds of what operators can store.
const (
	MaxPolicies   = 100_000  // clients with a policy of their own
	MaxCandidates = 1_000    // clients with a candidate
	MaxTargetSize = 12 << 10 // bytes of the value of a target as JSON; the longest valid one is shorter
	MaxEntrySize  = 1 << 20  // bytes of an entry of the trail as JSON
	MaxNoteLength = 500      // bytes of a note or a reason
)

// GlobalCandidate is the name of the candidate for the default limits. The others are
// named by their client_id.
const GlobalCandidate = "_default"

// PolicySet is what operators changed while the server ran: what all entries of the trail up to its
// Version come to. What is not set here is as in the configuration file.
//
// A set is not modified once it is shared; the With… methods return modified copies, which share with
// it what they do not change.
type PolicySet struct {
	// Version is that of the last entry; 0 if there never was one.
	Version    int64
	Settings   SettingsOverride
	Clients    cowmap.Map[ClientPolicy]
	Candidates cowmap.Map[Candidate]
	Tiers      cowmap.Map[Tier]
	Overrides  cowmap.Map[Override] // by OverrideKey
	Ends       cowmap.Map[End]      // of what is temporary, by target
}

// SettingsOverride is what operators changed of the settings for all clients. A nil field
// is as in the configuration file.
type SettingsOverride struct {
	Mode          *ratelimit.Mode        `json:"mode,omitempty"`
	CanaryPercent *float64               `json:"canary_percent,omitempty"`
	User          []ratelimit.Limit      `json:"user,omitempty"`
	Client        []ratelimit.Limit      `json:"client,omitempty"`
	Total         []ratelimit.Limit      `json:"total,omitempty"`
	Source        []ratelimit.Limit      `json:"source,omitempty"`
	OverLimit     *ratelimit.OverLimit   `json:"over_limit,omitempty"`
	MaxWait       *ratelimit.MaxWait     `json:"max_wait,omitempty"` // MaxWaiting goes with it
	MaxWaiting    *int                   `json:"max_waiting,omitempty"`
	Ban           *ratelimit.Ban         `json:"ban,omitempty"`
	Criticality   *ratelimit.Criticality `json:"criticality,omitempty"`
	HideHeaders   *bool                  `json:"hide_headers,omitempty"`
	Note          string                 `json:"note,omitempty"`
	Changed       int64                  `json:"changed,omitempty"` // version of the last change; not in an entry, which has it already
}

// ClientPolicy replaces the file's policy of one client.
type ClientPolicy struct {
	ratelimit.Policy
	Tier    string `json:"tier,omitempty"` // whose values apply where the policy has none; empty: none
	Note    string `json:"note,omitempty"`
	Changed int64  `json:"changed,omitempty"` // as above
}

// Candidate is limits that are tried beside the live ones: they have counters of their own
// and are never enforced. An empty list is not tried. What becomes of requests over them is as it is in force
// where the candidate does not say.
type Candidate struct {
	User       []ratelimit.Limit   `json:"user,omitempty"`
	Client     []ratelimit.Limit   `json:"client,omitempty"`
	Total      []ratelimit.Limit   `json:"total,omitempty"`
	Source     []ratelimit.Limit   `json:"source,omitempty"`
	OverLimit  ratelimit.OverLimit `json:"over_limit,omitempty"`
	MaxWait    *ratelimit.MaxWait  `json:"max_wait,omitempty"` // MaxWaiting goes with it
	MaxWaiting *int                `json:"max_waiting,omitempty"`
	Ban        *ratelimit.Ban      `json:"ban,omitempty"`
	// Criticality is not tried: it comes into force with the limits, when the candidate becomes live.
	Criticality ratelimit.Criticality `json:"criticality,omitempty"`
	Note        string                `json:"note,omitempty"`
	Since       time.Time             `json:"since"`
	Changed     int64                 `json:"changed,omitempty"` // as above
}

// Policy is what is tried.
func (c *Candidate) Policy() ratelimit.Policy {
	return ratelimit.Policy{
		User: c.User, Client: c.Client, Total: c.Total, Source: c.Source,
		OverLimit: c.OverLimit, MaxWait: c.MaxWait, MaxWaiting: c.MaxWaiting, Ban: c.Ban,
	}
}

// Reset is an order to forget counts, on all instances.
type Reset struct {
	Version  int64 // of the entry that brought it
	ClientID string
	Username *string // nil: all keys of the client
	At       time.Time
}

// WithPolicy returns a copy in which the client has that policy; with nil, the one of the
// configuration file.
func (s PolicySet) WithPolicy(clientID string, p *ClientPolicy) PolicySet {
	e := s.Clients.Edit()
	put(e, clientID, p)
	s.Clients = e.Map()
	return s
}

// WithCandidate returns a copy with that candidate, nil for none.
func (s PolicySet) WithCandidate(name string, c *Candidate) PolicySet {
	e := s.Candidates.Edit()
	put(e, name, c)
	s.Candidates = e.Map()
	return s
}

func put[V any](e *cowmap.Edit[V], key string, v *V) {
	if v == nil {
		e.Delete(key)
		return
	}
	e.Set(key, *v)
}

// Over returns base with the changes of the settings, and without the policies of single clients.
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

// Names returns the names of the settings that operators changed.
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

// trial returns the common settings under which the candidates are evaluated, if c is the candidate for
// the default limits.
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

// checkCounts reports, as [fielderr.Errors], that there is too much of a kind.
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

// ValidateNote returns an error if a text cannot be a note or a reason.
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
