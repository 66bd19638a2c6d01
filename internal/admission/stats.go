package admission

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Outcome is what became of a request at the gate.
type Outcome uint8

// The outcomes.
const (
	Admitted  Outcome = iota
	Shed              // refused
	WouldShed         // would have been refused; the mode is dry_run
	Abandoned         // its caller has gone
	Outcomes  = iota
)

var outcomeNames = [Outcomes]string{Admitted: "admitted", Shed: "shed", WouldShed: "would_shed", Abandoned: "abandoned"}

// String is the name, as in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Stats are the state of a gate, for metrics and readiness.
type Stats struct {
	Mode ratelimit.Mode
	// Wait is how long work waits for the processor at the moment.
	Wait time.Duration
	// Refused is the share of requests that are refused at the moment, 0 to 1; in dry-run, that would be.
	Refused float64
	// UpTo is the highest criticality of which some are refused; none if nothing is.
	UpTo ratelimit.Criticality
	// Overloaded is for how long something has been refused; 0 if nothing is.
	Overloaded time.Duration
	// Useless is for how long the most critical requests have been refused nearly all; 0 if they are not.
	Useless time.Duration
	// InFlight is how many requests are being worked on.
	InFlight int
	Requests [Classes][Outcomes]uint64 // since the start
}
