package overload

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// controller computes the share of requests to refuse that keeps the wait for the processor at a
// target. It is the controller of PIE (RFC 8033 section 4.2): the share follows the error and the
// change of the wait. It differs from PIE in three ways. The error is relative to the target, so
// one gain works for all targets. The error is bounded, so a single long wait has little effect.
// The gains fall as the share rises, because a change of the share then has a larger effect on the
// admitted requests.
type controller struct {
	refused float64       // 0 to 1
	last    time.Duration // the previous wait
	rate    float64       // the previous rate of requests
}

// The gains, if the wait reacts to a change of the share within 100 to 200 ms. See the
// simulation in the tests.
const (
	errorGain  = 0.3  // per second
	changeGain = 0.06 // per change of the wait by one target
	mostError  = 3    // in targets above the target
	leastGain  = 0.2  // factor of the gains when nearly all requests are refused
	// established is the share above which an overload is certain. After a moment when nothing
	// was served, the rate only looks higher.
	established = 0.1
)

// step updates the share after the time dt, from the wait, the target and the rate of requests. It
// returns the share to refuse. The share does not rise above most.
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

// follow keeps the rate of admitted requests constant when the total rate changes, so refusing ends
// as soon as an overload ends. It raises the share only during an overload.
func (c *controller) follow(rate float64, overloaded bool) {
	before := c.rate
	c.rate = rate
	if c.refused == 0 || rate <= 0 || rate > before && !overloaded {
		return
	}
	c.refused = max(0, 1-(1-c.refused)*before/rate)
}

// targetFactor is the factor on the target wait above which requests of a criticality are refused.
// The most critical requests are refused only if nothing else is left to refuse. A short burst must
// not cost a person a sign-in.
var targetFactor = [...]float64{
	ratelimit.Sheddable: 1, ratelimit.SheddablePlus: 1.5, ratelimit.Critical: 2, ratelimit.CriticalPlus: 3,
}
