package config

import (
	"oauth-server/internal/admission"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
)

// Overload is what is refused while the server is overloaded, and when that is.
type Overload struct {
	// Mode is enforce; dry_run, which counts what would be refused; or off.
	Mode ratelimit.Mode `json:"mode"`
	// Target is how long work may wait for the processor before the least critical requests are refused.
	Target Duration `json:"target"`
	// MaxInFlight is how many requests are worked on at once, at most.
	MaxInFlight int `json:"max_in_flight"`
	// MaxStoreCalls is how many calls to the store there are at once, at most. Fewer are let through while
	// the store is slow.
	MaxStoreCalls int `json:"max_store_calls"`
}

// The values of MaxStoreCalls. The default is above what a store gains from: each call has a processor or a
// connection of the database's to itself.
const (
	defaultMaxStoreCalls = 256
	mostMaxStoreCalls    = 10_000
)

func defaultOverload() Overload {
	d := admission.DefaultSettings()
	return Overload{Mode: d.Mode, Target: Duration(d.Target), MaxInFlight: d.MaxInFlight, MaxStoreCalls: defaultMaxStoreCalls}
}

// Gate returns the settings of the gate before the requests.
func (o Overload) Gate() admission.Settings {
	return admission.Settings{Mode: o.Mode, Target: o.Target.Std(), MaxInFlight: o.MaxInFlight}
}

func (o Overload) check(es *fielderr.Errors) {
	*es = append(*es, fielderr.Of(o.Gate().Validate()).Under("overload")...)
	if n := o.MaxStoreCalls; n < 1 || n > mostMaxStoreCalls {
		es.Add("overload.max_store_calls", "must be from 1 to %d, not %d", mostMaxStoreCalls, n)
	}
}
