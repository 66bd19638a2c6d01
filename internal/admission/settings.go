package admission

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Settings can be changed while a gate is in use.
type Settings struct {
	Mode ratelimit.Mode // Enforce, DryRun or Off
	// Target is how long work may wait for the processor before sheddable requests are refused. Those of higher
	// criticality are refused at longer waits.
	Target time.Duration
	// MaxInFlight is how many requests are worked on at once, at most.
	MaxInFlight int
}

// DefaultSettings are those where nothing is configured.
func DefaultSettings() Settings {
	return Settings{Mode: ratelimit.Enforce, Target: 10 * time.Millisecond, MaxInFlight: 10_000}
}
