package adminapi

import (
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
)

// Prefix is the path below which the API is served.
const Prefix = "/admin/v1"

// Limit is a limit. The server always sends all fields, except that it sends strict and lease_wait
// only for strict limits, and grants only for limits of certain grants. A client may omit fields
// that have a default.
type Limit struct {
	Name      string  `json:"name,omitempty"`
	Requests  int64   `json:"requests"`
	Window    string  `json:"window"`
	Frames    int64   `json:"frames,omitempty"`
	Algorithm string  `json:"algorithm,omitempty"`
	SoftRatio float64 `json:"soft_ratio,omitempty"`
	OnOutage  string  `json:"on_outage,omitempty"`
	Strict    bool    `json:"strict,omitempty"`
	LeaseWait string  `json:"lease_wait,omitempty"`
	// Grants are the grants that a limit of the list user counts; empty: all grants.
	Grants ratelimit.Grants `json:"grants,omitzero"`
}

// ShowLimit returns l as the API shows it.
func ShowLimit(l ratelimit.Limit) Limit {
	shown := Limit{
		l.Name, l.Requests, ShowWindow(l.Window), int64(l.Frames), string(l.Algorithm), l.SoftRatio, string(l.OnOutage), l.Strict, "", l.Grants,
	}
	if l.Strict {
		shown.LeaseWait = l.LeaseWait.String()
	}
	return shown
}

// ShowLimits returns a list as the API shows it. It keeps nil, because an absent list differs from
// an empty one.
func ShowLimits(limits []ratelimit.Limit) []Limit {
	if limits == nil {
		return nil
	}
	out := make([]Limit, len(limits))
	for i, l := range limits {
		out[i] = ShowLimit(l)
	}
	return out
}

// ShowWindow writes a window in seconds such as 60s, or in whole minutes or hours if it is longer
// than a minute and divisible.
func ShowWindow(d time.Duration) string {
	switch {
	case d > time.Minute && d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d > time.Minute && d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// Settings are the settings for all clients.
type Settings struct {
	Mode          string  `json:"mode"`
	CanaryPercent float64 `json:"canary_percent"`
	Default       Default `json:"default"`
	Note          string  `json:"note,omitempty"`
}

// Default applies to every client without its own policy.
type Default struct {
	User      []Limit `json:"user"`
	Client    []Limit `json:"client"`
	Total     []Limit `json:"total,omitempty"`  // of each client over all its users
	Source    []Limit `json:"source,omitempty"` // of each client from each source address
	OverLimit string  `json:"over_limit"`       // deny or reuse: for client_credentials
	Waits
	Ban         *ratelimit.Ban `json:"ban,omitempty"`
	Criticality string         `json:"criticality,omitempty"` // absent: depends on the request
	HideHeaders bool           `json:"hide_headers"`
}

// SettingsView is the settings with their read-only fields.
type SettingsView struct {
	Settings
	Meta struct {
		Version int64 `json:"version"`
		// Changed names the settings changed over the API. All others come from the configuration
		// file.
		Changed []string `json:"changed"`
		// Until is the end of temporary settings; zero: permanent.
		Until time.Time `json:"until,omitzero"`
	} `json:"meta"`
}

// Policy is the policy of one client. An absent field takes the value of the tier, or else of the
// settings.
type Policy struct {
	ClientID  string  `json:"client_id"`
	Trusted   bool    `json:"trusted"`
	Tier      string  `json:"tier,omitempty"` // its values take precedence over the settings
	Mode      string  `json:"mode,omitempty"`
	User      []Limit `json:"user,omitempty"`
	Client    []Limit `json:"client,omitempty"`
	Total     []Limit `json:"total,omitempty"`
	Source    []Limit `json:"source,omitempty"`
	OverLimit string  `json:"over_limit,omitempty"`
	Waits
	Ban         *ratelimit.Ban `json:"ban,omitempty"`
	Criticality string         `json:"criticality,omitempty"`
	HideHeaders bool           `json:"hide_headers"`
	Note        string         `json:"note,omitempty"`
}

// PolicyView is a policy with its read-only fields.
type PolicyView struct {
	Policy
	Effective Effective `json:"effective"`
	Meta      struct {
		Version int64     `json:"version"`
		Source  string    `json:"source"`         // api, file or none
		Until   time.Time `json:"until,omitzero"` // end if temporary; zero: permanent
	} `json:"meta"`
}

// Effective are the values in force for a client, from all sources.
type Effective struct {
	Mode      string  `json:"mode"`
	Trusted   bool    `json:"trusted"`
	User      []Limit `json:"user"`
	Client    []Limit `json:"client"`
	Total     []Limit `json:"total,omitempty"`
	Source    []Limit `json:"source,omitempty"`
	OverLimit string  `json:"over_limit"`
	Waits
	Ban         *ratelimit.Ban `json:"ban,omitempty"`         // absent: the client has no ban
	Criticality string         `json:"criticality,omitempty"` // absent: not set, depends on the request
	HideHeaders bool           `json:"hide_headers"`
	Tier        string         `json:"tier,omitempty"`      // of the client
	Overrides   int            `json:"overrides,omitempty"` // users with limits of their own
}

// ShowEffective returns e as the API shows it.
func ShowEffective(e *ratelimit.Effective) Effective {
	var ban *ratelimit.Ban
	if e.Ban != nil {
		ban = &e.Ban.Ban
	}
	return Effective{
		Mode: string(e.Mode), Trusted: e.Trusted, User: ShowLimits(e.User.All()), Client: ShowLimits(e.Client.All()), Total: ShowLimits(e.Total.All()), Source: ShowLimits(e.Source.All()),
		OverLimit: string(e.OverLimit), Waits: effectiveWaits(e.Wait), Ban: ban, Criticality: e.Criticality.String(), HideHeaders: e.HideHeaders, Tier: e.Tier, Overrides: e.Overridden(),
	}
}

// Candidate is a set of limits tried beside the limits in force.
type Candidate struct {
	ClientID string  `json:"client_id"`
	User     []Limit `json:"user,omitempty"`
	Client   []Limit `json:"client,omitempty"`
	Total    []Limit `json:"total,omitempty"`
	Source   []Limit `json:"source,omitempty"`
	// OverLimit, Waits and Ban are as in Policy. If absent, the candidate uses the values in force.
	OverLimit string `json:"over_limit,omitempty"`
	Waits
	Ban *ratelimit.Ban `json:"ban,omitempty"`
	// Criticality is not tried. It comes into force when the candidate is made live. Absent: the
	// value in force stays.
	Criticality string `json:"criticality,omitempty"`
	Note        string `json:"note,omitempty"`
}

// CandidateView is a candidate with the decisions made while it was tried.
type CandidateView struct {
	Candidate
	Since    time.Time `json:"since"`
	Activity Activity  `json:"activity"`
	Meta     struct {
		Version int64     `json:"version"`
		Until   time.Time `json:"until,omitzero"` // end if temporary; zero: permanent
	} `json:"meta"`
}
