package limiter

import (
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// TestRefundWhileTheFirstIsDecided: a refund can come after the first request of a queue was found
// to be over the limit, but before the timer is set for that. The first request must then pass at
// once, not only at the next check.
func TestRefundWhileTheFirstIsDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, longest := ratelimit.DefaultSettings(), ratelimit.Duration(10*time.Second)
		s.Default.Client, s.Default.MaxWait = []ratelimit.Limit{ratelimit.NewLimit("one", 1, 10*time.Second)}, &longest
		p, err := ratelimit.Compile(s)
		check.OK(t, err)
		policy := func() *ratelimit.Effective { return p.For("shop") }
		k, l := ratelimit.Key{ClientID: "shop"}, NewQueues(counting.NewCounters(0), time.Now)
		<-time.After(5 * time.Second)
		admitted := l.Take(t.Context(), k, policy)
		second := make(chan Admission, 1)
		go func() { second <- l.Take(t.Context(), k, policy) }()
		synctest.Wait()
		q := l.queues[k][0]
		first := l.begin(q)
		e, denied := l.decideFirst(q, first)
		l.GiveBack(k, &admitted)
		for p := l.resolve(q, first, e, &denied); p != nil; {
			e, t := l.decideFirst(q, p)
			p = l.resolve(q, p, e, &t)
		}
		admission := <-second
		check.Equal(t, "outcome", admission.Outcome, ratelimit.Delayed)
		check.Equal(t, "waited", admission.Waited, 0)
	})
}
