package syncer

import (
	"log/slog"
	"sync"
	"time"

	"oauth-server/internal/ratelimit/counting"
)

// outage records whether limits are decided by their OnOutage, because counts cannot be shared. It
// begins with an exchange that fails or is late, or with a heartbeat that fails. It ends with an
// exchange that succeeds; for an idle instance see endIdleOutage.
type outage struct {
	sync *counting.Sync
	log  *slog.Logger

	mu     sync.Mutex
	on     bool
	lost   int           // failures in a row, see begin
	failed time.Duration // when the latest of them was counted, since the syncer was made
	began  time.Duration // since the syncer was made; the same holds for ended
	ended  time.Duration
}

// recoverAfter is how long after an outage counters that were not exchanged since are still decided
// by their OnOutage.
const recoverAfter = 10 * time.Second

// lostAfter is the number of failures in a row after which requests under strict limits are denied
// at once. Until then each waits for its own permits, and failures of other limits do not affect
// it.
const lostAfter = 3

// begin begins an outage, unless there is one. The call that caused it began at began, and has
// failed or is late at now, both since the syncer was made. A call that was already under way when
// the last failure was counted does not count as another failure: one blip may affect several
// calls, and a late call may fail too.
func (o *outage) begin(began, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sync.Stalled()
	if o.lost == 0 || began >= o.failed {
		o.lost, o.failed = o.lost+1, now
	}
	if o.lost >= lostAfter {
		o.sync.SetLost(true)
	}
	if !o.on {
		o.on, o.began = true, now
		o.log.Warn("outage: counts cannot be shared, limits follow their on_outage")
	}
}

// end ends an outage, if there is one. elapsed is since the syncer was made, now is process time.
func (o *outage) end(elapsed time.Duration, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered()
	if o.on {
		o.on, o.ended = false, elapsed
		o.sync.Recovering(now)
		o.log.Info("outage over: counts are shared again", slog.String("after", (elapsed-o.began).Round(time.Millisecond).String()))
	}
}

// answered resets the failures in a row and admits strict limits again, see lostAfter. o.mu must be
// held.
func (o *outage) answered() {
	o.lost = 0
	o.sync.SetLost(false)
}

// beaten records that a heartbeat was stored. Without requests that wait for permits there may be
// no exchange to succeed.
func (o *outage) beaten() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered()
}

// recovered lets all counters be decided as usual once recoverAfter has passed since the outage.
func (o *outage) recovered(elapsed time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on && elapsed-o.ended > recoverAfter {
		o.sync.Recovered()
	}
}

// active reports whether there is an outage.
func (o *outage) active() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.on
}

// endIdleOutage ends an outage and forgets the failures of exchanges if nothing is left to retry.
// It is called after a heartbeat that was stored.
func (s *Syncer) endIdleOutage() {
	if s.health.clearIfIdle(2 * s.cfg.MaxBackoff) {
		s.outage.end(s.elapsed(), s.clock.Now())
	}
}
