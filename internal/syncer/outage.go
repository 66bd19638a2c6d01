package syncer

import (
	"log/slog"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
)

// outage is whether limits are decided by their OnOutage, because counts cannot
// be shared. It begins with an exchange that fails or is late, or a heartbeat that
// fails, and ends with an exchange that succeeds; see rested.
type outage struct {
	sync *ratelimit.Sync
	log  *slog.Logger

	mu    sync.Mutex
	on    bool
	began time.Time
	ended time.Duration // since the syncer began
}

// recoverAfter is how long counters that were not exchanged since an outage are
// still decided by their OnOutage.
const recoverAfter = 10 * time.Second

func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sync.Stalled()
	if !o.on {
		o.on, o.began = true, time.Now()
		o.log.Warn("outage: counts cannot be shared, limits are decided by their on_outage")
	}
}

func (o *outage) end(elapsed time.Duration, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.on {
		o.on, o.ended = false, elapsed
		o.sync.Recovering(now)
		o.log.Info("outage over: counts can be shared", "after", time.Since(o.began).Round(time.Millisecond))
	}
}

// recovered ends what follows an outage when it was long enough ago.
func (o *outage) recovered(elapsed time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on && elapsed-o.ended > recoverAfter {
		o.sync.Recovered()
	}
}

func (o *outage) active() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.on
}

// rested ends an outage, and forgets the failures of exchanges, when the store has
// answered a heartbeat and nothing is left that could be tried again.
func (s *Syncer) endIdleOutage() {
	if s.health.clearIfIdle(2 * s.cfg.MaxBackoff) {
		s.outage.end(s.elapsed(), s.clock.Now())
	}
}
