package clientcfg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
)

// Bounds of what operators can store. All instances read the whole set, and a MongoDB
// document has at most 16 MiB.
const (
	MaxPolicies   = 10_000  // clients with a policy of their own
	MaxCandidates = 1_000   // clients with a candidate
	MaxSetSize    = 4 << 20 // bytes of the whole set as JSON
	MaxNoteLength = 500     // bytes of a note or a reason
)

// GlobalCandidate is the name of the candidate for the default limits. The others are
// named by their client_id.
const GlobalCandidate = "_default"

// PolicySet is what operators changed while the server ran: one value that is stored,
// versioned and replaced as a whole. What is not set here is as in the configuration file.
//
// A set is not modified once it is shared; the With… methods return modified copies.
type PolicySet struct {
	// Version counts the changes; 0 if there never was one.
	Version    int64                   `json:"version"`
	Settings   SettingsOverride        `json:"settings"`
	Clients    map[string]ClientPolicy `json:"clients,omitempty"`
	Candidates map[string]Candidate    `json:"candidates,omitempty"`
	// Resets are the latest ones, oldest first, for instances that have not read them yet.
	Resets []Reset `json:"resets,omitempty"`
}

// SettingsOverride is what operators changed of the settings for all clients. A nil field
// is as in the configuration file.
type SettingsOverride struct {
	Mode          *ratelimit.Mode   `json:"mode,omitempty"`
	CanaryPercent *float64          `json:"canary_percent,omitempty"`
	User          []ratelimit.Limit `json:"user,omitempty"`
	Client        []ratelimit.Limit `json:"client,omitempty"`
	HideHeaders   *bool             `json:"hide_headers,omitempty"`
	Note          string            `json:"note,omitempty"`
	Changed       int64             `json:"changed,omitempty"` // version of the set at the last change
}

// ClientPolicy replaces the file's policy of one client.
type ClientPolicy struct {
	ratelimit.Policy
	Note    string `json:"note,omitempty"`
	Changed int64  `json:"changed,omitempty"` // version of the set at the last change
}

// Candidate is limits that are tried beside the live ones: they have counters of their own
// and are never enforced. An empty list is not tried.
type Candidate struct {
	User    []ratelimit.Limit `json:"user,omitempty"`
	Client  []ratelimit.Limit `json:"client,omitempty"`
	Note    string            `json:"note,omitempty"`
	Since   time.Time         `json:"since"`
	Changed int64             `json:"changed,omitempty"` // version of the set at the last change
}

// Reset is an order to forget counts, on all instances.
type Reset struct {
	Version  int64     `json:"version"` // of the set that brought it
	ClientID string    `json:"client_id"`
	Username *string   `json:"username,omitempty"` // nil: all keys of the client
	At       time.Time `json:"at"`
}

// Resets are kept for as long as an instance may take to read them, and no more than this
// many of them.
const (
	resetsKept = 256
	resetsFor  = time.Hour
)

// WithPolicy returns a copy in which the client has that policy; with nil, the one of the
// configuration file.
func (s PolicySet) WithPolicy(clientID string, p *ClientPolicy) PolicySet {
	s.Clients = changed(s.Clients, clientID, p)
	return s
}

// WithCandidate returns a copy with that candidate, nil for none.
func (s PolicySet) WithCandidate(name string, c *Candidate) PolicySet {
	s.Candidates = changed(s.Candidates, name, c)
	return s
}

// WithReset returns a copy with one more reset.
func (s PolicySet) WithReset(r Reset) PolicySet {
	kept := slices.DeleteFunc(slices.Clone(s.Resets), func(old Reset) bool { return r.At.Sub(old.At) > resetsFor })
	kept = append(kept, r)
	s.Resets = kept[max(0, len(kept)-resetsKept):]
	return s
}

func changed[V any](m map[string]V, key string, v *V) map[string]V {
	m = maps.Clone(m)
	if v == nil {
		delete(m, key)
		return m
	}
	if m == nil {
		m = map[string]V{}
	}
	m[key] = *v
	return m
}

// Over returns base with the changes of the set.
func (s *PolicySet) Over(base ratelimit.Settings) ratelimit.Settings {
	out, o := base, s.Settings
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
	if o.HideHeaders != nil {
		out.Default.HideHeaders = *o.HideHeaders
	}
	out.Clients = maps.Clone(base.Clients)
	if out.Clients == nil {
		out.Clients = make(map[string]ratelimit.Policy, len(s.Clients))
	}
	for id, p := range s.Clients {
		out.Clients[id] = p.Policy
	}
	return out
}

// Changed returns the names of the settings that the set changes, and the clients whose
// policies it changes, sorted.
func (s *PolicySet) Changed() (settings, clients []string) {
	o := s.Settings
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"mode", o.Mode != nil},
		{"canary_percent", o.CanaryPercent != nil},
		{"default.user", o.User != nil},
		{"default.client", o.Client != nil},
		{"default.hide_headers", o.HideHeaders != nil},
	} {
		if f.set {
			settings = append(settings, f.name)
		}
	}
	return settings, slices.Sorted(maps.Keys(s.Clients))
}

// trial returns the settings under which the candidates are evaluated.
func (s *PolicySet) trial(live ratelimit.Settings) ratelimit.Settings {
	out := ratelimit.Settings{
		Mode: ratelimit.DryRun, CanaryPercent: 100,
		Default: ratelimit.Policy{User: live.Default.User, Client: live.Default.Client},
		Clients: make(map[string]ratelimit.Policy, len(s.Candidates)),
	}
	for name, c := range s.Candidates {
		if name != GlobalCandidate {
			out.Clients[name] = ratelimit.Policy{User: c.User, Client: c.Client}
			continue
		}
		if len(c.User) > 0 {
			out.Default.User = c.User
		}
		if len(c.Client) > 0 {
			out.Default.Client = c.Client
		}
	}
	return out
}

// check reports, as [fielderr.Errors], what [ratelimit.Settings.Validate] does not check.
func (s *PolicySet) check() error {
	var es fielderr.Errors
	if n := len(s.Clients); n > MaxPolicies {
		es.Add("clients", "%d policies are more than %d", n, MaxPolicies)
	}
	if n := len(s.Candidates); n > MaxCandidates {
		es.Add("candidates", "%d candidates are more than %d", n, MaxCandidates)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Candidates)) {
		if c := s.Candidates[name]; len(c.User) == 0 && len(c.Client) == 0 {
			es.Add(fielderr.Join("candidates", name), "needs limits under user, client or both")
		}
	}
	if b, err := json.Marshal(s); err != nil {
		es.Add("", "cannot be encoded: %v", err)
	} else if len(b) > MaxSetSize {
		es.Add("", "all policies together take %d bytes, more than %d", len(b), MaxSetSize)
	}
	return es.Err()
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
