package admission

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// controller finds the share of requests to refuse so that the wait for the processor stays at a target. It is the
// controller of PIE (RFC 8033 section 4.2): the share follows the error, and the change of the wait. Differences:
// the error is relative to the target and bounded, so that one gain serves all targets, and a single long wait
// moves the share little; and the gains are lower the more is refused, as a change of the share then changes more of
// what is admitted.
type controller struct {
	refused float64       // 0 to 1
	last    time.Duration // the wait before
	rate    float64       // of requests, before
}

// The gains, for a period in which the wait reacts to the share within 100 to 200 ms. See the simulation in
// the tests.
const (
	errorGain  = 0.3  // per second
	changeGain = 0.06 // per target by which the wait changed
	mostError  = 3    // targets above the target
	leastGain  = 0.2  // of the above, where nearly all is refused
	// established is the share from which on an overload is taken to be one. A moment in which nothing was served
	// looks like a higher rate afterwards.
	established = 0.1
)

// step takes the wait after the time dt, the target and the rate of requests. It returns the share to refuse, which
// does not rise above most.
func (c *controller) step(wait, target, dt time.Duration, rate, most float64) float64 {
	relative := float64(wait)/float64(target) - 1
	before := float64(c.last)/float64(target) - 1
	refused := c.refused
	c.last = wait
	c.follow(rate, relative > 0 && c.refused > established)
	gain := max(leastGain, 1-c.refused)
	change := errorGain*dt.Seconds()*min(relative, mostError) + changeGain*(min(relative, mostError)-min(before, mostError))
	c.refused = max(0, min(1, c.refused+gain*change))
	if c.refused > refused {
		c.refused = max(refused, min(c.refused, most))
	}
	return c.refused
}

// follow keeps the rate of admitted requests when that of all changes, and so ends the refusing as soon as an
// overload ends. It refuses more only while there is an overload.
func (c *controller) follow(rate float64, overloaded bool) {
	before := c.rate
	c.rate = rate
	if c.refused == 0 || rate <= 0 || rate > before && !overloaded {
		return
	}
	c.refused = max(0, 1-(1-c.refused)*before/rate)
}

// targetFactor is by how much longer requests may wait before those of a criticality are refused. What is most
// critical is refused only where nothing else is left to refuse: a short burst must not cost a person a sign-in.
var targetFactor = [...]float64{
	ratelimit.Sheddable: 1, ratelimit.SheddablePlus: 1.5, ratelimit.Critical: 2, ratelimit.CriticalPlus: 3,
}
