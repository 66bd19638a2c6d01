package overload

import (
	"math"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// demand holds the ranks of the requests of the last second or two.
type demand struct {
	arrived [Ranks]atomic.Uint32 // since the last fold
	recent  [Ranks]float64       // decayed; used by one goroutine, like rate
	rate    float64              // requests per second
}

// The time constants of the decay.
const (
	memory     = time.Second
	rateMemory = 300 * time.Millisecond // for the total rate
)

// wholly is the share of a rank above which the whole rank is refused, so rounding never reaches
// the next rank.
const wholly = 0.9999

// fold adds the requests that arrived in the time dt.
func (d *demand) fold(dt time.Duration) {
	keep := math.Exp(-dt.Seconds() / memory.Seconds())
	var all uint32
	for i := range d.recent {
		n := d.arrived[i].Swap(0)
		d.recent[i] = d.recent[i]*keep + float64(n)
		all += n
	}
	keep = math.Exp(-dt.Seconds() / rateMemory.Seconds())
	d.rate = keep*d.rate + (1-keep)*float64(all)/dt.Seconds()
}

// level returns the level that refuses the given share of all requests.
func (d *demand) level(share float64) level {
	var total float64
	for _, n := range d.recent {
		total += n
	}
	left := share * total
	if share <= 0 || total < 1 {
		return 0
	}
	end := 0 // the number of ranks that are refused completely
	for i, n := range d.recent {
		switch {
		case n == 0:
		case left < n*wholly:
			return levelOf(i, left/n)
		default:
			left -= n
			end = i + 1
		}
		if left < n*(1-wholly) {
			return levelOf(end, 0)
		}
	}
	return levelOf(Ranks, 0)
}

// few is the decayed number of requests below which a kind counts as absent: a single request three
// seconds ago.
const few = 0.05

// refusable returns the share of requests that may be refused at a wait: requests with a target
// below the wait.
func (d *demand) refusable(wait, target time.Duration) float64 {
	var all, below float64
	for i, n := range d.recent {
		all += n
		if float64(wait) > targetFactor[Rank(i).Criticality()]*float64(target) {
			below += n
		}
	}
	return below / max(all, few)
}

// lowest returns the lowest criticality of the recent requests.
func (d *demand) lowest() ratelimit.Criticality {
	for i, n := range d.recent {
		if n > few {
			return Rank(i).Criticality()
		}
	}
	return ratelimit.Sheddable
}

// ofHighest returns the share that the level refuses of the requests of the highest present
// criticality. It returns 0 without requests.
func (d *demand) ofHighest(l level) float64 {
	var all, refused float64
	for i := Ranks - 1; i >= 0; i-- {
		if all > few && i%perCriticality == perCriticality-1 {
			break // the next lower criticality
		}
		all += d.recent[i]
		if below := float64(l)/levelUnit - float64(i); below > 0 {
			refused += d.recent[i] * min(1, below)
		}
	}
	return refused / max(all, few)
}

// level holds a rank in its upper bits and a share in its lower 16 bits. All requests of lower
// ranks are refused, and that share of the rank itself.
type level uint32

const levelUnit = 1 << 16

func levelOf(rank int, share float64) level {
	return level(rank)*levelUnit + level(share*(levelUnit-1)) //nolint:gosec // G115: at most Ranks
}

// refuses reports whether a request is refused. dice is a random number of 16 bits.
func (l level) refuses(r Rank, dice uint32) bool {
	return uint32(r)*levelUnit+dice < uint32(l)
}

// upTo returns the highest criticality with refused requests, or unset if the level refuses
// nothing.
func (l level) upTo() ratelimit.Criticality {
	if l == 0 {
		return ratelimit.CriticalityUnset
	}
	return Rank((l - 1) / levelUnit).Criticality() //nolint:gosec // G115: at most Ranks-1
}
