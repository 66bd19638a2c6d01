package overload

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Settings can be changed while a shedder is in use. The configuration has their bounds.
type Settings struct {
	Mode ratelimit.Mode // Enforce, DryRun or Off
	// Target is how long work may wait for the processor before sheddable requests are refused.
	// Requests of higher criticality are refused at longer waits, and all of them at longer waits
	// under a CPU quota.
	Target time.Duration
	// MaxInFlight is the maximum number of requests in progress.
	MaxInFlight int
}

// DefaultSettings returns the settings used without configuration.
func DefaultSettings() Settings {
	return Settings{Mode: ratelimit.Enforce, Target: 20 * time.Millisecond, MaxInFlight: 10_000}
}
