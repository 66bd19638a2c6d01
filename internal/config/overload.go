package config

import (
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// Overload configures which requests are refused during overload, and when.
type Overload struct {
	// Mode is enforce; dry_run, which only counts the requests that it would refuse; or off.
	Mode ratelimit.Mode `json:"mode" help:"refuse the least critical requests during overload: enforce, dry_run or off" values:"enforce dry_run off"`
	// Target is how long work may wait for the processor before the least critical requests are
	// refused. A wait below a millisecond is normal on an idle machine. After a second, callers give
	// up.
	Target Duration `json:"target" help:"how long work may wait for a processor before requests are refused" range:"1ms 1s"`
	// MaxInFlight is the maximum number of requests processed at once.
	MaxInFlight int `json:"max_in_flight" help:"maximum of requests in progress" range:"10 1000000"`
}

func defaultOverload() Overload {
	d := overload.DefaultSettings()
	return Overload{Mode: d.Mode, Target: Duration(d.Target), MaxInFlight: d.MaxInFlight}
}

// Settings returns the settings of load shedding.
func (o Overload) Settings() overload.Settings {
	return overload.Settings{Mode: o.Mode, Target: o.Target.Std(), MaxInFlight: o.MaxInFlight}
}
