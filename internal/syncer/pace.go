package syncer

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// pace ticks when the lazy counters are collected: a few times per flush interval, and while there
// are counters with a shorter wait, as often as that.
type pace struct {
	*time.Ticker
	usual, every time.Duration
	last         time.Duration // when a counter was last found that could wait no longer than every
}

// Bounds of how often counters are collected. A quicker pace is kept until no counter that needs it
// has been found for keepPace.
const (
	quickestPace = 10 * time.Millisecond
	slowestPace  = time.Second / 2
	keepPace     = time.Second
)

// newPace returns a pace for a flush interval. The caller must stop it.
func newPace(interval time.Duration) *pace {
	usual := min(max(interval/4, quickestPace), slowestPace)
	return &pace{Ticker: time.NewTicker(usual), usual: usual, every: usual}
}

// adjust sets the pace by how long the counters that were just collected can wait.
func (p *pace) adjust(now time.Duration, plans []ratelimit.Plan) {
	every := p.usual
	for i := range plans {
		if plans[i].Lazy {
			every = min(every, max(plans[i].In, quickestPace))
		}
	}
	if every <= p.every {
		p.last = now
	} else if now-p.last < keepPace {
		return
	}
	if every != p.every {
		p.every = every
		p.Reset(every)
	}
}
