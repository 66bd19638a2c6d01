package workload

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// patience is how long a request is tried again before its call is given up.
const patience = 10 * time.Minute

// clients turn calls into requests.
type clients struct {
	calls    *merged
	as       behaviour
	random   *rand.Rand
	lifetime time.Duration

	call     traffic.Request // the next one, if pending
	pending  bool
	ended    bool
	retries  attempts
	order    uint64  // of the last retry
	sent     attempt // the last request that Next yielded
	sessions map[session]*token
}

// session identifies the owner of a token.
type session struct{ client, user string }

// token is the token of a session.
type token struct {
	until  time.Time // end of its use
	asking bool      // a request is under way, or will be sent again; other calls wait for it
}

// attempt is a request to be sent, or already sent.
type attempt struct {
	traffic.Request
	first  time.Time // when it was first sent
	number int       // how often it was sent
	weight int64     // how many requests it stands for
	order  uint64    // order in the heap of requests with the same time
}

func react(calls *merged, b behaviour, s *Spec) *clients {
	return &clients{calls: calls, as: b, random: s.random(-1), lifetime: s.Lifetime, sessions: map[session]*token{}}
}

// Next implements [traffic.Source].
func (c *clients) Next(r *traffic.Request) bool {
	for {
		a, ok := c.earliest()
		if !ok {
			return false
		}
		if a.At.Before(c.sent.At) { // an answer came late
			a.At = c.sent.At
		}
		if c.as.reuses {
			t := c.token(&a.Request)
			if a.number == 0 && (t.asking || a.At.Before(t.until)) {
				continue
			}
			t.asking = true
		}
		a.number++
		c.sent = a
		*r = a.Request
		return true
	}
}

// earliest takes the next call or retry, whichever comes first.
func (c *clients) earliest() (a attempt, ok bool) {
	if !c.pending && !c.ended {
		c.pending = c.calls.Next(&c.call)
		c.ended = !c.pending
	}
	switch {
	case len(c.retries) > 0 && (!c.pending || !c.call.At.Before(c.retries[0].At)):
		return heap.Pop(&c.retries).(attempt), true
	case c.pending:
		c.pending = false
		return attempt{Request: c.call, first: c.call.At, weight: c.calls.Weight()}, true
	default:
		return a, false
	}
}

func (c *clients) token(r *traffic.Request) *token {
	s := session{r.Client, r.User}
	t := c.sessions[s]
	if t == nil {
		t = &token{}
		c.sessions[s] = t
	}
	return t
}

// Answer implements [traffic.Source].
func (c *clients) Answer(r *traffic.Request, a traffic.Answer) {
	again := a.Refused() && c.as.retry != nil
	if again {
		again = c.retry(r, a)
	}
	if !c.as.reuses {
		return
	}
	t := c.token(r)
	t.asking = again
	if !a.Refused() {
		t.until = r.At.Add(a.Wait + c.lifetime - c.as.early)
	}
}

// retry sends a denied request again, unless its call is given up.
func (c *clients) retry(r *traffic.Request, a traffic.Answer) bool {
	next := attempt{Request: *r, first: r.At, number: 1, weight: 1}
	if c.sent.Request == *r { // otherwise it was queued before it was denied
		next = c.sent
	}
	next.At = r.At.Add(c.as.retry(c.random, next.number, a))
	if next.At.Sub(next.first) > patience {
		return false
	}
	c.order++
	next.order = c.order
	heap.Push(&c.retries, next)
	return true
}

// Weight returns how many requests the last one that Next yielded stands for.
func (c *clients) Weight() int64 { return c.sent.weight }

// Err implements [traffic.Source].
func (c *clients) Err() error { return c.calls.Err() }

// attempts is a heap, the earliest first.
type attempts []attempt

// Len implements [heap.Interface].
func (h attempts) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h attempts) Less(i, j int) bool {
	if h[i].At.Equal(h[j].At) {
		return h[i].order < h[j].order
	}
	return h[i].At.Before(h[j].At)
}

// Swap implements [heap.Interface].
func (h attempts) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *attempts) Push(x any) { *h = append(*h, x.(attempt)) }

// Pop implements [heap.Interface].
func (h *attempts) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
