package ratelimit

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"oauth-server/internal/strict/fielderr"
)

// Bounds of a ban.
const (
	MaxDenials   = 1_000_000
	MinBan       = time.Second
	MaxBan       = MaxWindow
	MaxForget    = 366 * 24 * time.Hour
	MaxBanFactor = 1000
)

// banOff is the text that replaces a ban to switch it off.
const banOff = "off"

// Ban bans a client, or one of its users, that continues after it was denied.
type Ban struct {
	Denials int64         `json:"denials" schema:"minimum=1,maximum=1000000"` // this many denied requests; default 20
	Within  time.Duration `json:"within"`                                     // within this time start a ban; whole milliseconds, default 1m
	For     time.Duration `json:"for"`                                        // length of the first ban; default 5m
	// each further ban is longer by this factor; default 2
	Factor float64       `json:"factor" schema:"minimum=1,maximum=1000"`
	Max    time.Duration `json:"max"` // longest ban, at most 744h; default 24h
	// after this time without a ban, the next one counts as the first; default 24h
	Forget time.Duration `json:"forget"`
	// Off disables bans, even if the tier or the settings for all clients have one.
	Off bool `json:"-"`
}

// DefaultBan bans for 5 minutes after 20 denied requests in a minute. Each further ban is twice as
// long, up to a day. A ban is forgotten a day after its end.
func DefaultBan() Ban {
	const day = 24 * time.Hour
	return Ban{Denials: 20, Within: time.Minute, For: 5 * time.Minute, Factor: 2, Max: day, Forget: day}
}

// SetDefaults sets b to [DefaultBan]. Package strict calls it before it decodes the fields of a
// document.
func (b *Ban) SetDefaults() { *b = DefaultBan() }

// UnmarshalText accepts the text "off", which may replace the fields.
func (b *Ban) UnmarshalText(text []byte) error {
	if string(text) != banOff {
		return fmt.Errorf("%q is neither %q nor the fields of a ban", text, banOff)
	}
	*b = Ban{Off: true}
	return nil
}

// Length returns the length of a ban that follows before other bans that are not forgotten.
func (b *Ban) Length(before int) time.Duration {
	// Compared as floating-point numbers: the product may be infinite.
	if d := float64(b.For) * math.Pow(b.Factor, float64(before)); d < float64(b.Max) {
		return time.Duration(d)
	}
	return b.Max
}

// Validate returns every problem of the ban as [fielderr.Errors], or nil.
func (b *Ban) Validate() error { return b.validate().Err() }

func (b *Ban) validate() (es fielderr.Errors) {
	if b.Off {
		return nil
	}
	if b.Denials < 1 || b.Denials > MaxDenials {
		es.Add("denials", "%d is not between 1 and %d", b.Denials, MaxDenials)
	}
	switch {
	case b.Within <= 0 || b.Within > MaxWindow:
		es.Add("within", "%v is not above 0 and at most %v", b.Within, MaxWindow)
	case b.Within%time.Millisecond != 0:
		es.Add("within", "%v is not a whole number of milliseconds", b.Within)
	}
	if b.For < MinBan || b.For > MaxBan {
		es.Add("for", "%v is not between %v and %v", b.For, MinBan, MaxBan)
	}
	if !(b.Factor >= 1 && b.Factor <= MaxBanFactor) { // also catches NaN
		es.Add("factor", "%v is not between 1 and %d", b.Factor, MaxBanFactor)
	}
	switch {
	case b.Max < MinBan || b.Max > MaxBan:
		es.Add("max", "%v is not between %v and %v", b.Max, MinBan, MaxBan)
	case b.Max < b.For:
		es.Add("max", "%v is shorter than the first ban, which is for %v", b.Max, b.For)
	}
	if b.Forget < 0 || b.Forget > MaxForget {
		es.Add("forget", "%v is not between 0 and %v", b.Forget, MaxForget)
	}
	return es
}

// jsonBan is the JSON form of a ban.
type jsonBan struct {
	Denials int64    `json:"denials"`
	Within  Duration `json:"within"`
	For     Duration `json:"for"`
	Factor  float64  `json:"factor"`
	Max     Duration `json:"max"`
	Forget  Duration `json:"forget"`
}

func (b *Ban) json() jsonBan {
	return jsonBan{b.Denials, Duration(b.Within), Duration(b.For), b.Factor, Duration(b.Max), Duration(b.Forget)}
}

// MarshalJSON writes times as [Duration].
func (b Ban) MarshalJSON() ([]byte, error) {
	if b.Off {
		return json.Marshal(banOff)
	}
	return json.Marshal(b.json())
}

// UnmarshalJSON reads the output of MarshalJSON. Absent fields get their values from [DefaultBan].
func (b *Ban) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) == nil {
		return b.UnmarshalText([]byte(word))
	}
	d := DefaultBan()
	j := d.json()
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("ban: %w", err)
	}
	*b = Ban{Denials: j.Denials, Within: j.Within.Std(), For: j.For.Std(), Factor: j.Factor, Max: j.Max.Std(), Forget: j.Forget.Std()}
	return nil
}

// BanRule is a [Ban] prepared for decisions.
type BanRule struct {
	Ban
	// Counts is the limit that counts denied requests. The denied request that uses it up starts a
	// ban.
	Counts *Effective
}

// banFrames is the largest number of frames of the limit that counts denied requests.
const banFrames = 10

// compileBan returns nil for nil.
func compileBan(b *Ban) *BanRule {
	switch {
	case b == nil:
		return nil
	case b.Off:
		return &BanRule{Ban: *b}
	}
	l := NewLimit("denials", b.Denials, b.Within)
	l.OnOutage = Memory // an estimate of denials elsewhere must not start a ban
	for l.Frames = banFrames; b.Within.Milliseconds()%int64(l.Frames) != 0; {
		l.Frames--
	}
	ls := NewLimits([]Limit{l})
	return &BanRule{Ban: *b, Counts: &Effective{User: ls, Client: ls, Mode: Enforce, OverLimit: OverLimitDeny}}
}

// inForce returns the rule, or nil if bans are off.
func (r *BanRule) inForce() *BanRule {
	if r == nil || r.Off {
		return nil
	}
	return r
}

// Bans returns the rule that can ban the client, also in dry-run. It returns nil if the client is
// never banned.
func (e *Effective) Bans() *BanRule {
	if e.Trusted || e.Mode == Off {
		return nil
	}
	return e.Ban
}

// ByBan returns the decision on a request of a banned client or user. rest is the rest of the ban.
func ByBan(rest time.Duration, m Mode) Decision {
	if m == DryRun {
		return Decision{Outcome: WouldBan}
	}
	return Decision{Outcome: Banned, RetryAfter: rest}
}

// ThroughLimit reports whether the request was over one of the key's own limits by its counted
// requests. It is false if only a limit of the source or of the total denied it, because other keys
// may have used that up. It is also false if OnOutage decided, or if there was no room to count the
// request.
func (d *Decision) ThroughLimit() bool {
	if d.Outage || d.Outcome != Denied && d.Outcome != WouldDeny || d.limits == nil {
		return false
	}
	return d.exceeded&(1<<len(d.limits.Rules)-1) != 0
}
