package workload

import (
	"slices"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// patience is how long a request is retried before its call is given up.
const patience = 10 * time.Minute

// retrying are clients that obey Retry-After.
type retrying struct {
	calls   *merged
	call    traffic.Request // the next one, if pending
	pending bool
	retries []attempt // in the order of their time
	sent    attempt   // the last request that Next yielded
}

// attempt is a request and when it was first sent.
type attempt struct {
	traffic.Request
	first time.Time
}

// Next implements [traffic.Source]. It yields the next call or retry, whichever comes first.
func (c *retrying) Next(r *traffic.Request) bool {
	if !c.pending {
		c.pending = c.calls.Next(&c.call)
	}
	switch {
	case len(c.retries) > 0 && (!c.pending || !c.call.At.Before(c.retries[0].At)):
		c.sent, c.retries = c.retries[0], c.retries[1:]
	case c.pending:
		c.sent, c.pending = attempt{c.call, c.call.At}, false
	default:
		return false
	}
	*r = c.sent.Request
	return true
}

// Answer implements [traffic.Source]. Retry-After is in whole seconds.
func (c *retrying) Answer(r *traffic.Request, a traffic.Answer) {
	if !a.Refused() {
		return
	}
	next := attempt{*r, c.sent.first}
	next.At = r.At.Add(max((a.RetryAfter + time.Second - 1).Truncate(time.Second), time.Second))
	if next.At.Sub(next.first) > patience {
		return
	}
	i, _ := slices.BinarySearchFunc(c.retries, next.At, func(other attempt, at time.Time) int {
		if other.At.After(at) {
			return 1
		}
		return -1 // also at the same time: behind the others
	})
	c.retries = slices.Insert(c.retries, i, next)
}

// Err implements [traffic.Source].
func (c *retrying) Err() error { return c.calls.Err() }
