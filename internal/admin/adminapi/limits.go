package adminapi

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Prefix is the path below which the API is served.
const Prefix = "/admin/v1"

// The documents of settings, tiers, policies, overrides and candidates have read-only fields, which are
// ignored in a request: an operator can read a document, edit it and send it back.

// Meta says when and where a value was set.
type Meta struct {
	Version int64 `json:"version"` // version of the policies at the last change; 0: never changed
	// Of settings: the fields changed over the API. All others come from the configuration file.
	Changed []string  `json:"changed,omitzero"`
	Source  string    `json:"source,omitempty" schema:"enum=api|file|none"` // of a policy: where it comes from
	Until   time.Time `json:"until,omitzero"`                               // end of a temporary value; absent: permanent
}

// Settings are the settings for all clients.
type Settings struct {
	Mode string `json:"mode" schema:"enum=enforce|dry_run|off"` // what happens to a request over a limit
	// share of clients that the mode enforce applies to; dry-run for the others
	CanaryPercent float64 `json:"canary_percent" schema:"minimum=0,maximum=100"`
	Default       Default `json:"default"` // limits of every client without its own
	// for people: at most 500 bytes of printable characters
	Note string `json:"note,omitempty" schema:"maxLength=500"`
	Meta Meta   `json:"meta,omitzero" schema:"readonly"`
}

// Default is the limits of a client and what happens to requests over them: of every client without its
// own policy, or in force for one client.
type Default struct {
	// For each user of a client. At most 8 limits, like client; at most 4 in total and in source.
	User   []ratelimit.Limit `json:"user"`
	Client []ratelimit.Limit `json:"client"` // for each client: client_credentials
	// for each client over all its users and grants, beside the other lists; absent: none
	Total []ratelimit.Limit `json:"total,omitempty"`
	// For each client from each source address, over all its users and grants, beside the other
	// lists. An IPv6 address counts by its /64. Absent: none.
	Source []ratelimit.Limit `json:"source,omitempty"`
	// What a client gets for client_credentials over its limit: 429, or its last token for the
	// same again, while a fifth of its life is left.
	OverLimit string `json:"over_limit" schema:"enum=deny|reuse"`
	Waits
	Ban *ratelimit.Ban `json:"ban,omitempty"` // absent: no ban
	// Which requests are refused first while the server is overloaded: sheddable, then
	// sheddable_plus, critical, and critical_plus last. Absent: depends on the request.
	Criticality string `json:"criticality,omitempty" schema:"enum=critical_plus|critical|sheddable_plus|sheddable"`
	HideHeaders bool   `json:"hide_headers"` // leave the RateLimit fields and violated-policies out of responses
}

// Lists is what a policy, a tier and a candidate have in common: limits, and what happens to requests
// over them.
type Lists struct {
	User   []ratelimit.Limit `json:"user,omitempty"`   // for each user of a client
	Client []ratelimit.Limit `json:"client,omitempty"` // for a client itself: client_credentials
	// for a client over all its users and grants, beside the other lists
	Total     []ratelimit.Limit    `json:"total,omitempty"`
	Source    []ratelimit.Limit    `json:"source,omitempty"`                              // for a client from each source address, beside the other lists
	OverLimit *ratelimit.OverLimit `json:"over_limit,omitempty" schema:"enum=deny|reuse"` // not reuse for a trusted client
	Waits
	Ban         *ratelimit.Ban         `json:"ban,omitempty"`
	Criticality *ratelimit.Criticality `json:"criticality,omitempty" schema:"enum=critical_plus|critical|sheddable_plus|sheddable"`
}

// ShowLists returns what p sets.
func ShowLists(p *ratelimit.Policy) Lists {
	return Lists{
		User: p.User, Client: p.Client, Total: p.Total, Source: p.Source,
		OverLimit: Reference(p.OverLimit), Waits: Waits{p.MaxWait, p.MaxWaiting}, Ban: p.Ban, Criticality: Reference(p.Criticality),
	}
}

// Policy is the policy of one client. An absent field takes the value of the tier, or else of the
// settings.
type Policy struct {
	ClientID string  `json:"client_id"`
	Trusted  bool    `json:"trusted"`                              // never denied, and not counted
	Tier     *string `json:"tier,omitempty" schema:"maxLength=64"` // its values apply where the policy has none
	// absent: the mode of the tier, or else of the settings, with their canary share
	Mode *ratelimit.Mode `json:"mode,omitempty" schema:"enum=enforce|dry_run|off"`
	Lists
	HideHeaders bool `json:"hide_headers"`
	// for people: at most 500 bytes of printable characters
	Note      string     `json:"note,omitempty" schema:"maxLength=500"`
	Effective *Effective `json:"effective,omitempty" schema:"readonly"`
	Meta      Meta       `json:"meta,omitzero" schema:"readonly"`
}

// Effective are the values in force for a client, from all sources.
type Effective struct {
	Mode      string `json:"mode" schema:"enum=enforce|dry_run|off"` // what happens to a request over a limit
	Trusted   bool   `json:"trusted"`
	Default          // user: without the users with limits of their own
	Tier      string `json:"tier,omitempty"`                         // tier of the client; absent: none
	Overrides int    `json:"overrides,omitempty" schema:"minimum=1"` // users with their own limits; absent: none
}

// ShowEffective returns e as the API shows it.
func ShowEffective(e *ratelimit.Effective) Effective {
	var ban *ratelimit.Ban
	if e.Ban != nil {
		ban = &e.Ban.Ban
	}
	return Effective{Mode: string(e.Mode), Trusted: e.Trusted, Tier: e.Tier, Overrides: e.Overridden(), Default: Default{
		User: e.User.All(), Client: e.Client.All(), Total: e.Total.All(), Source: e.Source.All(), OverLimit: string(e.OverLimit),
		Waits: effectiveWaits(e.Wait), Ban: ban, Criticality: e.Criticality.String(), HideHeaders: e.HideHeaders,
	}}
}

// Candidate is a set of limits tried beside the limits in force, with the decisions made meanwhile. An
// absent list is not tried. Absent, over_limit, max_wait and ban are tried with the values in force. The
// criticality is not tried: it comes into force when the candidate is made live.
type Candidate struct {
	ClientID string `json:"client_id"` // _default: the candidate for the default limits
	Lists
	// for people: at most 500 bytes of printable characters
	Note     string    `json:"note,omitempty" schema:"maxLength=500"`
	Since    time.Time `json:"since,omitzero" schema:"readonly"` // since when these limits are tried
	Activity *Activity `json:"activity,omitempty" schema:"readonly"`
	Meta     Meta      `json:"meta,omitzero" schema:"readonly"`
}
