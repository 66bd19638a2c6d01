package ratelimit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/strict/fielderr"
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
	MaxWait    *Duration `json:"max_wait,omitempty"`
	MaxWaiting *int      `json:"max_waiting,omitempty"`
	// Ban bans users and clients that continue after they were denied. Nil: the ban of the tier
	// applies, or else the ban for all clients.
	Ban *Ban `json:"ban,omitempty"`
	// Criticality ranks the requests of the client while the server is overloaded.
	// CriticalityUnset: the criticality of the tier applies, or else the one for all clients.
	// Trusted clients and clients in the mode Off may have one.
	Criticality Criticality `json:"criticality,omitempty"`
	// HideHeaders omits the RateLimit fields and the names of the limits from responses.
	// Nil: not set. For a client it is enough if its policy, its tier or the default does so.
	HideHeaders *bool `json:"hide_headers,omitempty"`
}

// Hides reports whether the policy sets HideHeaders to true.
func (p *Policy) Hides() bool { return p.HideHeaders != nil && *p.HideHeaders }

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
		es.Add("mode", "%q is not one of %q, %q, %q", p.Mode, Enforce, DryRun, Off)
	}
	switch {
	case !p.OverLimit.valid():
		es.Add("over_limit", "%q is not one of %q, %q", p.OverLimit, OverLimitDeny, OverLimitReuse)
	case p.Trusted && p.OverLimit == OverLimitReuse:
		es.Add("over_limit", "a trusted client is never over a limit: omit %q, or do not trust the client", OverLimitReuse)
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
		es.Add("", "a trusted client is never denied: omit the ban, or do not trust the client")
	}
	if p.Mode == Off && !p.Ban.Off {
		es.Add("", "in mode %q nothing is denied: omit the ban, or choose another mode", Off)
	}
	return append(es, p.Ban.validate()...)
}

func (o OverLimit) valid() bool { return o == "" || o == OverLimitDeny || o == OverLimitReuse }

func (m Mode) valid() bool { return slices.Contains([]Mode{Unset, Enforce, DryRun, Off}, m) }

// validated returns the limits of a list to validate: the whole list if it has a valid length. A
// longer list is cut to 2*MaxLimits, which is as many problems as a person would read.
func validated(limits []Limit) []Limit { return limits[:min(len(limits), 2*MaxLimits)] }

func validateLimits(field string, limits []Limit) (es fielderr.Errors) {
	if len(limits) > MaxLimits {
		es.Add(field, "%d limits exceed the maximum of %d", len(limits), MaxLimits)
	}
	limits = validated(limits)
	seen := make(map[string]int, len(limits))
	for i := range limits {
		path := fielderr.Item(field, i)
		es = append(es, fielderr.Of(limits[i].Validate()).Under(path)...)
		if first, twice := seen[limits[i].Name]; twice {
			es.Add(path+".name", "%q is already the name of %s[%d]", limits[i].Name, field, first)
		} else {
			seen[limits[i].Name] = i
		}
	}
	return es
}

// Settings is the complete configuration of limits.
type Settings struct {
	// Mode is the global mode; unset means Enforce.
	Mode Mode `json:"mode" help:"enforce, dry_run or off"`
	// Instance is the mode of this process alone; if set, it overrides all others.
	Instance Mode `json:"instance_mode,omitempty" help:"mode of this process alone, which overrides every other mode"`
	// CanaryPercent is the share of clients, 0 to 100, that the global mode Enforce applies to. The
	// other clients get DryRun. The client_id alone decides whether a client is in the share, and a
	// larger share contains every smaller one. A mode set for a client or for this instance
	// overrides it.
	CanaryPercent float64           `json:"canary_percent" help:"share of clients that enforce applies to"`
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
		es.Add("mode", "%q is not one of %q, %q, %q", s.Mode, Enforce, DryRun, Off)
	}
	if !s.Instance.valid() {
		es.Add("instance_mode", "%q is not one of %q, %q, %q", s.Instance, Enforce, DryRun, Off)
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
		es.Add("user", "needs at least one limit; for no limits, set the mode to %q", Off)
	}
	if len(s.Default.Client) == 0 {
		es.Add("client", "needs at least one limit; for no limits, set the mode to %q", Off)
	}
	if s.Default.Trusted {
		es.Add("trusted", "the default policy cannot be trusted; to limit no client, set the mode to %q", Off)
	}
	if s.Default.Mode != Unset {
		es.Add("mode", "the mode of all clients is the global mode")
	}
	return es
}

// Bounds for waiting requests over the limit.
const (
	// LongestWait bounds max_wait. It must stay below the timeouts of the server for clients:
	// net/http cancels the context of a request when its connection reaches the read deadline.
	LongestWait = 10 * time.Second
	// MaxWaiting bounds max_waiting. It also bounds how many requests wait in one process at once,
	// over all keys.
	MaxWaiting     = 1000
	defaultWaiting = 10
)

// Duration is a time that documents have as a string such as "2s".
type Duration time.Duration

// Std converts it to a time.Duration.
func (w Duration) Std() time.Duration { return time.Duration(w) }

// String formats it as in documents.
func (w Duration) String() string { return FormatWindow(w.Std()) }

// MarshalText formats it as in documents.
func (w Duration) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the output of MarshalText.
func (w *Duration) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("must be a duration with a unit, such as 2s, not %.40q", text)
	}
	*w = Duration(d)
	return nil
}

// Wait configures how requests over the limit wait. With the zero Wait they do not wait.
type Wait struct {
	Longest time.Duration // longest wait of one request
	AtOnce  int           // how many requests of one key may wait
}

// wait returns the Wait of the first policy with a MaxWait. MaxWaiting is always taken from the
// same policy.
func wait(policies ...*Policy) Wait {
	for _, p := range policies {
		switch {
		case p.MaxWait == nil:
		case p.MaxWaiting == nil:
			return Wait{Longest: p.MaxWait.Std(), AtOnce: defaultWaiting}
		default:
			return Wait{Longest: p.MaxWait.Std(), AtOnce: *p.MaxWaiting}
		}
	}
	return Wait{}
}

// Waits reports whether requests of the key over the limit wait, or would wait in dry-run. They do
// not if the client gets its last token again, because it gets that at once.
func (e *Effective) Waits(k Key) bool {
	return e.Wait.Longest > 0 && !e.Trusted && e.Mode != Off && (k.Username != "" || e.OverLimit != OverLimitReuse)
}

// validateWait returns the problems of max_wait and max_waiting.
func (p *Policy) validateWait() (es fielderr.Errors) {
	waits := p.MaxWait != nil && *p.MaxWait > 0
	if p.MaxWait != nil {
		es = append(es, p.validateMaxWait()...)
	}
	switch {
	case p.MaxWaiting == nil:
	case !waits:
		es.Add("max_waiting", "needs max_wait")
	case *p.MaxWaiting < 1 || *p.MaxWaiting > MaxWaiting:
		es.Add("max_waiting", "%d is not between 1 and %d", *p.MaxWaiting, MaxWaiting)
	}
	return es
}

func (p *Policy) validateMaxWait() (es fielderr.Errors) {
	w := *p.MaxWait
	if w < 0 || w.Std() > LongestWait {
		es.Add("max_wait", "%v is not between 0s and %v", w.Std(), LongestWait)
	}
	if w.Std()%time.Millisecond != 0 {
		es.Add("max_wait", "%v is not a whole number of milliseconds", w.Std())
	}
	if w <= 0 {
		return es
	}
	es = append(es, w.within("user", p.User)...)
	es = append(es, w.within("client", p.Client)...)
	if p.Trusted {
		es.Add("max_wait", "a trusted client is never over a limit: omit it, or do not trust the client")
	}
	if p.OverLimit == OverLimitReuse {
		es.Add("max_wait", "cannot be used together with over_limit %q, which answers immediately", OverLimitReuse)
	}
	return es
}

// within returns a problem if the wait is longer than the longest window of a non-empty list.
func (w Duration) within(field string, list []Limit) (es fielderr.Errors) {
	var longest time.Duration
	for i := range list {
		longest = max(longest, list[i].Window)
	}
	if len(list) > 0 && w.Std() > longest {
		es.Add("max_wait", "%v is longer than the longest window of %s, %v", w.Std(), field, longest)
	}
	return es
}

// MaxShared bounds the number of limits in Total, and in Source.
const MaxShared = 4

// sharedLists returns the lists that count requests of different keys together, with their field
// names.
func (p *Policy) sharedLists() []namedList {
	return []namedList{{"source", p.Source}, {"total", p.Total}}
}

// namedList is a list of limits and the name of its field in the policy.
type namedList struct {
	field  string
	limits []Limit
}

// validateShared returns every problem of Source and Total, alone and in combination with the other
// lists.
func (p *Policy) validateShared() (es fielderr.Errors) {
	before := []namedList{{"user", validated(p.User)}, {"client", validated(p.Client)}}
	for _, l := range p.sharedLists() {
		if len(l.limits) > MaxShared {
			es.Add(l.field, "%d limits exceed the maximum of %d", len(l.limits), MaxShared)
		}
		l.limits = validated(l.limits)
		es = append(es, l.validate()...)
		for _, other := range before {
			es = append(es, l.compare(other)...)
		}
		before = append(before, l)
	}
	return es
}

// validate returns the problems of a shared list by itself.
func (l *namedList) validate() (es fielderr.Errors) {
	es = append(validateLimits(l.field, l.limits), refuseGrants(l.field, l.limits)...)
	for i := range l.limits {
		if usual := DefaultLimit().Name; l.limits[i].Name == usual {
			es.Add(fielderr.Item(l.field, i)+".name", "%q is a default name in the other lists, and clients see both: choose another name, such as %s", usual, l.exampleName())
		}
		if l.limits[i].Strict {
			es.Add(fielderr.Item(l.field, i)+".strict", "strict is not available in %s yet", l.field)
		}
	}
	return es
}

func (l *namedList) exampleName() string {
	if l.field == "source" {
		return "per-address"
	}
	return "all-users"
}

// compare returns the conflicts of another list with this one. One is a limit that can never be
// reached because this list admits less in an equal or longer window. Another is a name that both
// lists use.
func (l *namedList) compare(other namedList) (es fielderr.Errors) {
	for i := range other.limits {
		for j := range l.limits {
			o, mine, path := &other.limits[i], &l.limits[j], fielderr.Item(l.field, j)
			if l.field == "total" && o.Requests > mine.Requests && o.Window <= mine.Window {
				es.Add(path+".requests", "%d in %s is less than %s, %d in %s: a total covers all of them",
					mine.Requests, FormatWindow(mine.Window), fielderr.Item(other.field, i), o.Requests, FormatWindow(o.Window))
			}
			if o.Name == mine.Name {
				es.Add(path+".name", "%q is already the name of %s", mine.Name, fielderr.Item(other.field, i))
			}
		}
	}
	return es
}

// Criticality ranks requests while the server is overloaded: the server refuses requests of a lower
// criticality first. It does not affect limits. A higher value is more critical. The names are from
// Beyer et al., Site Reliability Engineering (O'Reilly, 2016), ch. 21, Handling Overload.
type Criticality int8

// The criticalities. If none is set, the next less specific one applies. If there is no such
// setting, the server decides by the kind of request.
const (
	CriticalityUnset Criticality = iota
	Sheddable                    // refused first
	SheddablePlus
	Critical
	CriticalPlus // refused last
)

var criticalityNames = [...]string{Sheddable: "sheddable", SheddablePlus: "sheddable_plus", Critical: "critical", CriticalPlus: "critical_plus"}

// CriticalityNames returns the names that can be set, highest first.
func CriticalityNames() []string {
	names := slices.Clone(criticalityNames[Sheddable:])
	slices.Reverse(names)
	return names
}

// ParseCriticality is the inverse of [Criticality.String]. An empty text is CriticalityUnset. The
// error for an unknown text lists the valid names.
func ParseCriticality(text string) (Criticality, error) {
	for c := CriticalityUnset; c.valid(); c++ {
		if criticalityNames[c] == text {
			return c, nil
		}
	}
	return CriticalityUnset, noCriticality(text)
}

// noCriticality returns the error for a text that is not a valid name.
func noCriticality(text string) error {
	return fmt.Errorf(`%.40q is not one of "%s"`, text, strings.Join(CriticalityNames(), `", "`))
}

// String returns the name, as in documents. It is empty for CriticalityUnset.
func (c Criticality) String() string {
	if !c.valid() {
		return fmt.Sprintf("Criticality(%d)", int8(c))
	}
	return criticalityNames[c]
}

// MarshalText writes the name. An invalid value is an error.
func (c Criticality) MarshalText() ([]byte, error) {
	if !c.valid() {
		return nil, noCriticality(c.String())
	}
	return []byte(c.String()), nil
}

// UnmarshalText parses the text with [ParseCriticality].
func (c *Criticality) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCriticality(string(text))
	return err
}

func (c Criticality) valid() bool { return c >= CriticalityUnset && c <= CriticalPlus }
