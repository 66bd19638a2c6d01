package overload

import (
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// Settings can be changed while a shedder is in use.
type Settings struct {
	Mode ratelimit.Mode // Enforce, DryRun or Off
	// Target is how long work may wait for the processor before sheddable requests are refused.
	// Requests of higher criticality are refused at longer waits.
	Target time.Duration
	// MaxInFlight is the maximum number of requests in progress.
	MaxInFlight int
}

// DefaultSettings returns the settings used without configuration.
func DefaultSettings() Settings {
	return Settings{Mode: ratelimit.Enforce, Target: 5 * time.Millisecond, MaxInFlight: 10_000}
}

// The bounds of the settings. A wait below a millisecond is normal on an idle machine. After a
// second, callers give up.
const (
	minTarget      = time.Millisecond
	maxTarget      = time.Second
	minMaxInFlight = 10
	maxMaxInFlight = 1_000_000
)

// Validate returns all problems of the settings as [fielderr.Errors], with the names of the
// configuration fields, or nil.
func (s Settings) Validate() error {
	var es fielderr.Errors
	if !slices.Contains([]ratelimit.Mode{ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off}, s.Mode) {
		es.Add("mode", "%q is none of %q, %q, %q", s.Mode, ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off)
	}
	if s.Target < minTarget || s.Target > maxTarget {
		es.Add("target", "must be from %s to %s, not %s", minTarget, maxTarget, s.Target)
	}
	if s.MaxInFlight < minMaxInFlight || s.MaxInFlight > maxMaxInFlight {
		es.Add("max_in_flight", "must be from %d to %d, not %d", minMaxInFlight, maxMaxInFlight, s.MaxInFlight)
	}
	return es.Err()
}
