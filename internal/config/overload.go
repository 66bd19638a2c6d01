package config

import (
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// Overload configures which requests are refused during overload, and when.
type Overload struct {
	// Mode is enforce; dry_run, which only counts the requests that it would refuse; or off.
	Mode ratelimit.Mode `json:"mode" help:"refuse the least critical requests while overloaded: enforce, dry_run or off"`
	// Target is how long work may wait for the processor before the least critical requests are refused.
	Target Duration `json:"target" help:"how long work may wait for the processor before something is refused"`
	// MaxInFlight is the maximum number of requests processed at once.
	MaxInFlight int `json:"max_in_flight" help:"requests that are worked on at once, at most"`
}

func defaultOverload() Overload {
	d := overload.DefaultSettings()
	return Overload{Mode: d.Mode, Target: Duration(d.Target), MaxInFlight: d.MaxInFlight}
}

// Settings returns the settings of load shedding.
func (o Overload) Settings() overload.Settings {
	return overload.Settings{Mode: o.Mode, Target: o.Target.Std(), MaxInFlight: o.MaxInFlight}
}

func (o Overload) check(es *fielderr.Errors) {
	*es = append(*es, fielderr.Of(o.Settings().Validate()).Under("overload")...)
}
