package ratelimit

import (
	"maps"
	"slices"
	"time"

	"oauth-server/internal/fielderr"
)

// Mode names what happens to a request that its limits deny.
type Mode string

// The modes. Where a mode is unset, the next less specific one applies.
const (
	Unset   Mode = ""
	Enforce Mode = "enforce" // a denied request is answered with 429
	DryRun  Mode = "dry_run" // counted in the same way, recorded, and passed
	Off     Mode = "off"     // passed without being counted
)

// OverLimit names the response to a client_credentials request over the limit.
type OverLimit string

// The choices. If none is set, the next less specific one applies. The last default is
// OverLimitDeny.
const (
	OverLimitDeny  OverLimit = "deny"  // 429
	OverLimitReuse OverLimit = "reuse" // the last token for the same request again, while it lives long enough; otherwise 429
)

// ReusedUntil returns until when a token may be handed out again under [OverLimitReuse]: until a
// fifth of its life is left, and at least a second. Libraries treat an expires_in of 0 as a token
// that never expires.
func ReusedUntil(expires time.Time, life time.Duration) time.Time {
	return expires.Add(-max(life/5, time.Second))
}

// Policy is the limits and settings of one client, or the default for all clients. If a list of a
// client's policy is empty, the list of the default policy applies.
type Policy struct {
	// User has the limits for each user of the client, for grants with a user.
	User []Limit `json:"user,omitempty"`
	// Client has the limits for the client itself, for client_credentials.
	Client []Limit `json:"client,omitempty"`
	// Total has the limits for the client over all its users and all grants. Each request of the
	// client counts against them too, in the same atomic step. Unlike User and Client it may be
	// empty in the default policy.
	Total []Limit `json:"total,omitempty"`
	// Source has the limits for the client from each source address, over all its users and all
	// grants. Like Total it counts in the same step, and may be empty in the default policy.
	Source []Limit `json:"source,omitempty"`
	// Trusted clients always pass and are not counted.
	Trusted bool `json:"trusted,omitempty"`
	Mode    Mode `json:"mode,omitempty"`
	// OverLimit applies to client_credentials requests. Empty: the choice of the tier applies, or
	// else the choice for all clients.
	OverLimit OverLimit `json:"over_limit,omitempty"`
	// MaxWait is how long a request over the limit may wait; 0 means not at all. MaxWaiting is how
	// many requests of one key may wait at once; nil means 10. If MaxWait is nil, both come from
	// the tier, or else from the default policy.
	MaxWait    *MaxWait `json:"max_wait,omitempty"`
	MaxWaiting *int     `json:"max_waiting,omitempty"`
	// Ban bans users and clients that continue after they were denied. Nil: the ban of the tier
	// applies, or else the ban for all clients.
	Ban *Ban `json:"ban,omitempty"`
	// Criticality ranks the requests of the client while the server is overloaded.
	// CriticalityUnset: the criticality of the tier applies, or else the one for all clients.
	// Trusted clients and clients in the mode Off may have one.
	Criticality Criticality `json:"criticality,omitempty"`
	// HideHeaders omits the RateLimit fields and the names of the limits from responses.
	HideHeaders bool `json:"hide_headers,omitempty"`
}

// DefaultPolicy has one limit, [DefaultLimit], for users and for clients.
func DefaultPolicy() Policy {
	return Policy{User: []Limit{DefaultLimit()}, Client: []Limit{DefaultLimit()}}
}

// Validate returns every problem of the policy as [fielderr.Errors], or nil.
func (p *Policy) Validate() error { return p.validate().Err() }

func (p *Policy) validate() fielderr.Errors {
	es := append(validateLimits("user", p.User), validateLimits("client", p.Client)...)
	es = append(es, refuseGrants("client", p.Client)...)
	es = append(es, p.validateShared()...)
	if !p.Mode.valid() {
		es.Add("mode", "%q is none of %q, %q, %q", p.Mode, Enforce, DryRun, Off)
	}
	switch {
	case !p.OverLimit.valid():
		es.Add("over_limit", "%q is none of %q, %q", p.OverLimit, OverLimitDeny, OverLimitReuse)
	case p.Trusted && p.OverLimit == OverLimitReuse:
		es.Add("over_limit", "a trusted client is never over a limit: leave out %q, or do not trust the client", OverLimitReuse)
	}
	if !p.Criticality.valid() {
		es.Add("criticality", "%v", noCriticality(p.Criticality.String()))
	}
	return append(append(es, p.validateWait()...), p.validateBan().Under("ban")...)
}

func (p *Policy) validateBan() (es fielderr.Errors) {
	if p.Ban == nil {
		return nil
	}
	if p.Trusted && !p.Ban.Off {
		es.Add("", "a trusted client has no limit, and so is never denied: leave the ban out, or do not trust the client")
	}
	if p.Mode == Off && !p.Ban.Off {
		es.Add("", "in the mode %q nothing is counted, and so nobody is denied: leave the ban out, or choose another mode", Off)
	}
	return append(es, p.Ban.validate()...)
}

func (o OverLimit) valid() bool { return o == "" || o == OverLimitDeny || o == OverLimitReuse }

func (m Mode) valid() bool { return slices.Contains([]Mode{Unset, Enforce, DryRun, Off}, m) }

// judged returns the limits of a list to validate: the whole list if it has a valid length. A
// longer list is cut to 2*MaxLimits, which is as many problems as a person would read.
func judged(limits []Limit) []Limit { return limits[:min(len(limits), 2*MaxLimits)] }

func validateLimits(field string, limits []Limit) (es fielderr.Errors) {
	if len(limits) > MaxLimits {
		es.Add(field, "%d limits are more than %d", len(limits), MaxLimits)
	}
	limits = judged(limits)
	seen := make(map[string]int, len(limits))
	for i := range limits {
		path := fielderr.Item(field, i)
		es = append(es, fielderr.Of(limits[i].Validate()).Under(path)...)
		if first, twice := seen[limits[i].Name]; twice {
			es.Add(path+".name", "%q is the name of %s[%d] already", limits[i].Name, field, first)
		} else {
			seen[limits[i].Name] = i
		}
	}
	return es
}

// Settings is the complete configuration of limits.
type Settings struct {
	// Mode is the global mode; unset means Enforce.
	Mode Mode `json:"mode"`
	// Instance is the mode of this process alone; if set, it overrides all others.
	Instance Mode `json:"instance_mode,omitempty"`
	// CanaryPercent is the share of clients, 0 to 100, that the global mode Enforce applies to. The
	// other clients get DryRun. The client_id alone decides whether a client is in the share, and a
	// larger share contains every smaller one. A mode set for a client or for this instance
	// overrides it.
	CanaryPercent float64           `json:"canary_percent"`
	Default       Policy            `json:"default"`
	Clients       map[string]Policy `json:"clients,omitempty"`
}

// DefaultSettings enforces [DefaultPolicy] for every client.
func DefaultSettings() Settings {
	return Settings{Mode: Enforce, CanaryPercent: 100, Default: DefaultPolicy()}
}

// Validate returns every problem of the settings as [fielderr.Errors], or nil. It does not check
// whether the clients exist.
func (s *Settings) Validate() error {
	var es fielderr.Errors
	if !s.Mode.valid() {
		es.Add("mode", "%q is none of %q, %q, %q", s.Mode, Enforce, DryRun, Off)
	}
	if !s.Instance.valid() {
		es.Add("instance_mode", "%q is none of %q, %q, %q", s.Instance, Enforce, DryRun, Off)
	}
	if !(s.CanaryPercent >= 0 && s.CanaryPercent <= 100) { // also catches NaN
		es.Add("canary_percent", "%v is not between 0 and 100", s.CanaryPercent)
	}
	es = append(es, s.validateDefault().Under("default")...)
	for _, id := range slices.Sorted(maps.Keys(s.Clients)) {
		p := s.Clients[id]
		es = append(es, p.validate().Under(fielderr.Join("clients", id))...)
	}
	return es.Err()
}

func (s *Settings) validateDefault() fielderr.Errors {
	es := s.Default.validate()
	if len(s.Default.User) == 0 {
		es.Add("user", "at least one limit is needed; to have none, set the mode to %q", Off)
	}
	if len(s.Default.Client) == 0 {
		es.Add("client", "at least one limit is needed; to have none, set the mode to %q", Off)
	}
	if s.Default.Trusted {
		es.Add("trusted", "the default policy cannot be trusted; to limit no client, set the mode to %q", Off)
	}
	if s.Default.Mode != Unset {
		es.Add("mode", "the mode of all clients is the global mode")
	}
	return es
}
