package syncer

import (
	"time"

	"oauth-server/internal/ratelimit/counting"
)

// pace decides when the lazy counters are collected: a few times per flush interval, and more often
// while some counters have a shorter wait. Times are since the syncer was made.
type pace struct {
	usual, every time.Duration
	next         time.Duration
	last         time.Duration // when a counter was last found that could wait no longer than every
}

// Bounds of how often counters are collected. A quicker pace is kept until no counter has needed it
// for keepPace.
const (
	quickestPace = 10 * time.Millisecond
	slowestPace  = time.Second / 2
	keepPace     = time.Second
)

// newPace returns a pace for a flush interval.
func newPace(interval, now time.Duration) *pace {
	usual := min(max(interval/4, quickestPace), slowestPace)
	return &pace{usual: usual, every: usual, next: now + usual}
}

// adjust sets the pace by how long the collected counters can wait.
func (p *pace) adjust(now time.Duration, plans []counting.Plan) {
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
		p.every, p.next = every, now+every
	}
}

// wait returns the time until the next collection. Counters have just been collected, at now.
func (p *pace) wait(now time.Duration) time.Duration {
	if late := now - p.next; late >= 0 {
		p.next += (late/p.every + 1) * p.every
	}
	return p.next - now
}
