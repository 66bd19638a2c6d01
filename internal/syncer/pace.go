package syncer

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// pace ticks when the counters that can wait are collected: a few times per
// interval, and as often as the shortest wait while there are shorter ones.
type pace struct {
	*time.Ticker
	usual, every time.Duration
	last         time.Duration // when a counter last could wait no longer than every
}

// Bounds of how often counters are collected. A quicker pace is kept for as long
// as counters with a short wait come that seldom.
const (
	quickestPace = 10 * time.Millisecond
	slowestPace  = time.Second / 2
	keepPace     = time.Second
)

func newPace(interval time.Duration) *pace {
	usual := min(max(interval/4, quickestPace), slowestPace)
	return &pace{Ticker: time.NewTicker(usual), usual: usual, every: usual}
}

// follow takes over how long the counters that were just collected can wait.
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
