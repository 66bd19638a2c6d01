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
	for i, n := range d.recent {
		if left < n {
			return levelOf(i, left/n)
		}
		left -= n
	}
	return levelOf(Ranks, 0)
}

// refused is the share of the requests of a criticality that the level refuses; 0 if there are none.
func (d *demand) refused(l level, c ratelimit.Criticality) float64 {
	var all, refused float64
	for i, n := range d.recent {
		if Rank(i).criticality() != c {
			continue
		}
		all += n
		if below := (float64(l) - float64(i)*levelUnit) / levelUnit; below > 0 {
			refused += n * min(1, below)
		}
	}
	if all < 1 {
		return 0
	}
	return refused / all
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
	return Rank((l - 1) / levelUnit).criticality() //nolint:gosec // G115: at most Ranks-1
}
