package limiters

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer/clock"
)

// ours is the limiter as it runs in a server: with its clock, and attached to a syncer, so that every request also
// queues its counter. The syncer itself is another measurement's; Settle stands in for it.
type ours struct {
	counters *counting.Counters
	sync     *counting.Sync
	policy   *ratelimit.Effective
	now      func() time.Time
}

func newOurs(l Limit, keys int) (Limiter, error) {
	limit := ratelimit.NewLimit("limit", l.Requests, l.Window)
	policy, err := ratelimit.Enforced(limit, limit)
	if err != nil {
		return nil, err
	}
	c, now := counting.NewCounters(keys), clock.New(nil).Now
	return &ours{
		counters: c, sync: c.Sync(counting.SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second, Clock: now}),
		policy: policy, now: now,
	}, nil
}

// Allow implements [Limiter].
func (o *ours) Allow(key string) bool {
	k := ratelimit.Key{ClientID: key[:clientSize], Username: key[clientSize+1:]}
	d := o.counters.Take(o.now(), k, o.policy, 1)
	return !d.Rejected()
}

// Settle exchanges all due counters, like a syncer with a store that applies writes at once.
func (o *ours) Settle() {
	now, seq := o.now(), int64(1)
	for _, p := range o.sync.Due(now, nil) {
		for {
			task, ok := o.sync.Begin(now, p.Ticket, seq)
			if !ok {
				break
			}
			seq++
			done := o.sync.Finish(now, &task, counting.Result{Read: task.Read, Status: counting.Applied, NewEtag: 1})
			if task.Seq != 0 || !done.Planned {
				break
			}
			p = done.Next
		}
	}
}

// Close implements [Limiter].
func (*ours) Close() error { return nil }
