package admission

import (
	"math"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// demand knows of what rank the requests of the last second or two were.
type demand struct {
	arrived [Ranks]atomic.Uint32 // since the last fold
	recent  [Ranks]float64       // decayed; of one goroutine, as is rate
	rate    float64              // a second
}

// memory is the time constant with which earlier requests are forgotten.
const (
	memory     = time.Second
	rateMemory = 300 * time.Millisecond // of the rate of all together
)

// wholly is the share of a rank from which on all of it is taken, so that no rounding reaches into the next one.
const wholly = 0.9999

// fold adds what has arrived in the time dt.
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

// level returns up to which rank to refuse requests, so that they are the given share of all.
func (d *demand) level(share float64) level {
	var total float64
	for _, n := range d.recent {
		total += n
	}
	left := share * total
	if share <= 0 || total < 1 {
		return 0
	}
	end := 0 // of the ranks that are refused whole
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

// few is the decayed number of requests up to which there are none of a kind: one that came three seconds ago.
const few = 0.05

// refusable is the share of requests that may be refused at a wait: those of criticalities whose own target is below.
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

// lowest is the lowest criticality of which there are requests.
func (d *demand) lowest() ratelimit.Criticality {
	for i, n := range d.recent {
		if n > few {
			return Rank(i).Criticality()
		}
	}
	return ratelimit.Sheddable
}

// ofHighest is the share that the level refuses of the requests of the highest criticality that there are requests of; 0
// if there are none.
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

// level is a rank in its upper bits: all requests of lower ranks are refused, and of the rank itself the share in
// its lower 16 bits.
type level uint32

const levelUnit = 1 << 16

func levelOf(rank int, share float64) level {
	return level(rank)*levelUnit + level(share*(levelUnit-1)) //nolint:gosec // G115: at most Ranks
}

// refuses reports whether a request is refused. dice is random, and of 16 bits.
func (l level) refuses(r Rank, dice uint32) bool {
	return uint32(r)*levelUnit+dice < uint32(l)
}

// upTo is the highest criticality of which requests are refused; none if none is.
func (l level) upTo() ratelimit.Criticality {
	if l == 0 {
		return ratelimit.CriticalityUnset
	}
	return Rank((l - 1) / levelUnit).Criticality() //nolint:gosec // G115: at most Ranks-1
}
