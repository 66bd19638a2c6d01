package ratelimit

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/strict/fielderr"
)

// Algorithm names how the requests inside the window are estimated.
type Algorithm string

// The algorithms; docs/rate-limits.md compares them.
const (
	// Sliding adds the frames that are wholly inside the window, and a part of the oldest frame in
	// proportion to how much of it the window still covers.
	Sliding Algorithm = "sliding"
	// Weighted is the formula published by Allegro: e x current + (1 - e) x previous, where e is
	// the elapsed share of the current frame.
	Weighted Algorithm = "weighted"
	// Fixed counts the current frame only.
	Fixed Algorithm = "fixed"
)

// OnOutage names how a limit decides while counts cannot be shared through the store.
type OnOutage string

// The choices. docs/rate-limits.md has how much each of them admits.
const (
	// Share assumes that every other live process has admitted as many requests since the last
	// exchange as this one. Together they admit about one limit.
	Share OnOutage = "share"
	// Memory decides from the counts of this process alone, so each process admits up to one limit.
	Memory OnOutage = "memory"
	// Deny admits no request whose count cannot be shared.
	Deny OnOutage = "deny"
)

// Bounds of a limit. They keep every product in the estimate below 2^63 and the memory of a counter
// small.
const (
	MaxRequests = 1_000_000_000
	MaxWindow   = 31 * 24 * time.Hour
	MaxFrames   = 60
	MaxLimits   = 8 // limits that apply to one key
	MaxNameSize = 32

	MinLeaseWait = time.Millisecond
	MaxLeaseWait = 5 * time.Second
)

// The values that [Limit.MakeStrict] sets.
const (
	defaultLeaseWait = 50 * time.Millisecond
	// minStrictFrame is the shortest frame that MakeStrict chooses. The clock is uncertain by one
	// round trip to the store, and a frame must be several times as long.
	minStrictFrame = 50 * time.Millisecond
)

// Limit is a limit. The server always sends all fields, except that it sends strict and lease_wait
// only for strict limits, and grants only for limits of certain grants. A client may omit fields
// that have a default.
type Limit struct {
	// Unique in its list: letters, digits, -, _ and . Default per-minute.
	Name string `json:"name,omitempty" schema:"pattern=^[A-Za-z0-9._-]+$,maxLength=32"`
	// admitted requests per window; default 100
	Requests int64 `json:"requests" schema:"minimum=1,maximum=1000000000"`
	// Length with its unit, such as 60s, 1.5s or 24h: above 0 and at most 744h, in whole
	// milliseconds. Default 60s.
	Window time.Duration `json:"window" schema:"example=60s"`
	// Frames that make up a window: more frames give a finer estimate. Default 1, and up to 60 for
	// a strict limit, of at least 50ms each. They must divide the window into whole milliseconds,
	// and be 1 unless the algorithm is sliding.
	Frames int `json:"frames,omitempty" schema:"minimum=1,maximum=60"`
	// how the window is estimated; default sliding
	Algorithm Algorithm `json:"algorithm,omitempty" schema:"enum=sliding|weighted|fixed"`
	// The client is warned from this share of the limit on. Default 0.8.
	SoftRatio float64 `json:"soft_ratio,omitempty" schema:"exclusiveMinimum=0,maximum=1"`
	// How the limit is decided while the store does not accept counts. share: every instance
	// assumes that the others admit as much as itself, so together they admit about one limit.
	// memory: each instance admits up to the whole limit. deny: nothing passes that cannot be
	// counted for all. Default share, and always deny for a strict limit.
	OnOutage OnOutage `json:"on_outage,omitempty" schema:"enum=share|memory|deny"`
	// Never more than requests in any window, on all instances together, through any fault.
	// Requests wait for permits that the store has counted before. The algorithm must be sliding.
	Strict bool `json:"strict,omitempty"`
	// Only for a strict limit: how long a request waits for permits at most, from 1ms to 5s.
	// Default 50ms.
	LeaseWait time.Duration `json:"lease_wait,omitempty" schema:"example=100ms"`
	// Only in the list user: the limit counts and denies requests of these grants only. Absent:
	// all grants.
	Grants Grants `json:"grants,omitzero"`
}

// DefaultLimit is 100 requests per minute, sliding, with one frame per window, a warning from 80 %
// on, and [Share] during an outage.
func DefaultLimit() Limit {
	return Limit{
		Name: "per-minute", Requests: 100, Window: time.Minute,
		Frames: 1, Algorithm: Sliding, SoftRatio: 0.8, OnOutage: Share,
	}
}

// SetDefaults sets l to [DefaultLimit]. Package strict calls it before it decodes the fields of a
// document.
func (l *Limit) SetDefaults() { *l = DefaultLimit() }

// NewLimit returns a limit with the given name, requests and window. The other fields are those of
// [DefaultLimit]. It does not validate.
func NewLimit(name string, requests int64, window time.Duration) Limit {
	l := DefaultLimit()
	l.Name, l.Requests, l.Window = name, requests, window
	return l
}

// MakeStrict makes l a strict limit with the usual values. A strict limit admits requests from
// permits that the store has counted before: see Await in package counting. A frame
// counts in full while any part of it is inside the window, so MakeStrict chooses as many frames as
// possible: the most, up to [MaxFrames], that divide the window and are not too short.
func (l *Limit) MakeStrict() {
	l.Strict, l.Algorithm, l.OnOutage, l.LeaseWait = true, Sliding, Deny, defaultLeaseWait
	window := l.Window.Milliseconds()
	for l.Frames = MaxFrames; l.Frames > 1; l.Frames-- {
		if window%int64(l.Frames) == 0 && window/int64(l.Frames) >= minStrictFrame.Milliseconds() {
			return
		}
	}
}

// Validate returns every problem of the limit as [fielderr.Errors], or nil. A zero field is a
// problem: only [DefaultLimit] and the decoders fill in defaults, so an explicit zero is not
// replaced by one.
func (l *Limit) Validate() error {
	var es fielderr.Errors
	if !validName(l.Name) {
		es.Add("name", "%q must have 1 to %d letters, digits, '-', '_' or '.'", l.Name, MaxNameSize)
	}
	if l.Requests < 1 || l.Requests > MaxRequests {
		es.Add("requests", "%d is not between 1 and %d", l.Requests, int64(MaxRequests))
	}
	es = append(es, l.validateWindow()...)
	if !(l.SoftRatio > 0 && l.SoftRatio <= 1) { // also catches NaN
		es.Add("soft_ratio", "%v is not above 0 and at most 1", l.SoftRatio)
	}
	if l.OnOutage != Share && l.OnOutage != Memory && l.OnOutage != Deny {
		es.Add("on_outage", "%q is not one of %q, %q, %q", l.OnOutage, Share, Memory, Deny)
	}
	es = append(es, l.validateStrict()...)
	return es.Err()
}

func (l *Limit) validateStrict() (es fielderr.Errors) {
	if !l.Strict {
		if l.LeaseWait != 0 {
			es.Add("lease_wait", "is allowed only for a strict limit")
		}
		return es
	}
	if l.Algorithm == Weighted || l.Algorithm == Fixed {
		es.Add("algorithm", "%q can exceed the limit in some window: a strict limit must be %q", l.Algorithm, Sliding)
	}
	if l.OnOutage == Share || l.OnOutage == Memory {
		es.Add("on_outage", "%q admits requests that other instances do not count: a strict limit must have %q", l.OnOutage, Deny)
	}
	if l.LeaseWait < MinLeaseWait || l.LeaseWait > MaxLeaseWait {
		es.Add("lease_wait", "%v is not between %v and %v", l.LeaseWait, MinLeaseWait, MaxLeaseWait)
	}
	return es
}

func (l *Limit) validateWindow() (es fielderr.Errors) {
	switch {
	case l.Window <= 0 || l.Window > MaxWindow:
		es.Add("window", "%v is not above 0 and at most %v", l.Window, MaxWindow)
	case l.Window%time.Millisecond != 0:
		es.Add("window", "%v is not a whole number of milliseconds", l.Window)
	case l.Frames >= 1 && l.Frames <= MaxFrames && l.Window.Milliseconds()%int64(l.Frames) != 0:
		es.Add("frames", "%d frames do not divide a window of %v into whole milliseconds", l.Frames, l.Window)
	}
	if l.Frames < 1 || l.Frames > MaxFrames {
		es.Add("frames", "%d is not between 1 and %d", l.Frames, MaxFrames)
	}
	switch l.Algorithm {
	case Sliding:
	case Weighted, Fixed:
		if l.Frames > 1 {
			es.Add("frames", "%q needs frames to be 1", l.Algorithm)
		}
	default:
		es.Add("algorithm", "%q is not one of %q, %q, %q", l.Algorithm, Sliding, Weighted, Fixed)
	}
	return es
}

// validName reports whether s can be used unescaped in a structured field string (RFC 9651), in a
// metric label and in a document.
func validName(s string) bool {
	if s == "" || len(s) > MaxNameSize {
		return false
	}
	for i := range len(s) {
		switch b := s[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-', b == '_', b == '.':
		default:
			return false
		}
	}
	return true
}

// FormatWindow formats d as in configurations, without zero parts: 1h, not 1h0m0s.
// [time.ParseDuration] parses it.
func FormatWindow(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
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

// window is a [Duration] in the form of ShowWindow.
type window Duration

// MarshalText writes it with ShowWindow.
func (w window) MarshalText() ([]byte, error) { return []byte(ShowWindow(time.Duration(w))), nil }

// UnmarshalText reads the output of MarshalText, and of [Duration].
func (w *window) UnmarshalText(text []byte) error { return (*Duration)(w).UnmarshalText(text) }

// jsonLimit is the JSON form of a limit.
type jsonLimit struct {
	Name      string    `json:"name"`
	Requests  int64     `json:"requests"`
	Window    window    `json:"window"`
	Frames    int       `json:"frames"`
	Algorithm Algorithm `json:"algorithm"`
	SoftRatio float64   `json:"soft_ratio"`
	OnOutage  OnOutage  `json:"on_outage"`
	Strict    bool      `json:"strict,omitempty"`
	LeaseWait Duration  `json:"lease_wait,omitempty"`
	Grants    Grants    `json:"grants,omitzero"`
}

func (l *Limit) json() jsonLimit {
	return jsonLimit{
		l.Name, l.Requests, window(l.Window), l.Frames, l.Algorithm, l.SoftRatio, l.OnOutage, l.Strict, Duration(l.LeaseWait), l.Grants,
	}
}

// MarshalJSON writes times as texts.
func (l Limit) MarshalJSON() ([]byte, error) { return json.Marshal(l.json()) }

// UnmarshalJSON reads the output of MarshalJSON. Absent fields get their values from
// [DefaultLimit]. For a strict limit the values of [Limit.MakeStrict] take precedence.
func (l *Limit) UnmarshalJSON(b []byte) error {
	d := DefaultLimit()
	if err := d.decode(b); err != nil {
		return err
	}
	if d.Strict {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(b, &fields); err != nil {
			return fmt.Errorf("limit: %w", err)
		}
		d.Complete(func(field string) bool { return len(fields[field]) > 0 && string(fields[field]) != "null" })
	}
	*l = d
	return nil
}

// Complete sets the fields of a strict limit that are not given to the values of
// [Limit.MakeStrict]. Package strict calls it after it has decoded the fields of a document.
func (l *Limit) Complete(given func(field string) bool) {
	if !l.Strict {
		return
	}
	usual := *l
	usual.MakeStrict()
	if !given("frames") {
		l.Frames = usual.Frames
	}
	if !given("algorithm") {
		l.Algorithm = usual.Algorithm
	}
	if !given("on_outage") {
		l.OnOutage = usual.OnOutage
	}
	if !given("lease_wait") {
		l.LeaseWait = usual.LeaseWait
	}
}

// decode sets the fields that are present in the JSON.
func (l *Limit) decode(b []byte) error {
	j := l.json()
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("limit: %w", err)
	}
	*l = Limit{j.Name, j.Requests, time.Duration(j.Window), j.Frames, j.Algorithm, j.SoftRatio, j.OnOutage, j.Strict, j.LeaseWait.Std(), j.Grants}
	return nil
}

// DeniesAs reports whether two limits deny the same requests while counts are shared. Fields that
// do not matter for that, such as on_outage and lease_wait, are ignored, so what was recorded under
// one limit holds for the other.
func (l Limit) DeniesAs(o Limit) bool {
	l.OnOutage, l.LeaseWait = o.OnOutage, o.LeaseWait
	return l == o
}

// softAt returns the count at which warnings start, rounded up. The ratio is rounded to millionths
// first, so that 0.7 of 10 is 7 and not 7.000000000000001.
func (l *Limit) softAt() int64 {
	millionths := int64(math.Round(l.SoftRatio * 1e6))
	return (millionths*l.Requests + 999_999) / 1_000_000
}
