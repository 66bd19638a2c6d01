package overload

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Outcome is the result of a request at the shedder.
type Outcome uint8

// The outcomes.
const (
	Admitted  Outcome = iota
	Shed              // refused
	WouldShed         // would have been refused; the mode is dry_run
	Abandoned         // the caller had hung up
	Outcomes  = iota
)

var outcomeNames = [Outcomes]string{Admitted: "admitted", Shed: "shed", WouldShed: "would_shed", Abandoned: "abandoned"}

// String returns the name for metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Stats is the state of a shedder, for metrics and readiness.
type Stats struct {
	Mode ratelimit.Mode
	// Wait is the current wait for the processor.
	Wait time.Duration
	// Refused is the share of requests that are currently refused, or would be in dry-run mode,
	// from 0 to 1.
	Refused float64
	// UpTo is the highest criticality that is partly refused. Unset: nothing is refused.
	UpTo ratelimit.Criticality
	// Overloaded is how long requests have been refused. 0: nothing is refused.
	Overloaded time.Duration
	// Useless is how long nearly all of the most critical requests have been refused. 0: they are
	// not.
	Useless time.Duration
	// InFlight is the number of requests in progress.
	InFlight int
	Requests [Classes][Outcomes]uint64 // since the start
}
