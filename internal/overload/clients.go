package overload

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// clients tracks the recent requests of each client and how near its limit it was. For clients that
// anyone can send requests as, it tracks the requests of each source separately. It forgets silent
// clients.
type clients struct {
	of     sync.Map // name -> *client
	active atomic.Int64
	others client // all clients for which there is no room
	sent   window // by all clients
}

// mostClients bounds the memory. Each client needs about 200 bytes.
const mostClients = 1 << 16

// client holds the data of one client. Its fields change without a lock, so figures may be off by
// one request at the turn of a period.
type client struct {
	sent  window
	usage atomic.Uint64 // float64: weighted mean of the used share of the limit, the latest decision weighing most
	asked atomic.Bool   // there was a decision in this period
}

// window counts requests in a sliding minute, from the current period and the part of the previous
// one that is still in the window.
type window struct{ now, before atomic.Int64 }

const period = time.Minute

func (w *window) nextPeriod() (empty bool) {
	w.before.Store(w.now.Swap(0))
	return w.before.Load() == 0
}

// estimate returns the count of the last minute. elapsed is the elapsed share of the current
// period.
func (w *window) estimate(elapsed float64) float64 {
	return float64(w.now.Load()) + (1-elapsed)*float64(w.before.Load())
}

// sender returns the key that a request counts for.
func (r *Request) sender() string {
	if r.Source == "" {
		return r.ClientID
	}
	return r.ClientID + "\x00" + r.Source
}

func (t *clients) find(id string) *client {
	if c, ok := t.of.Load(id); ok {
		return c.(*client)
	}
	if t.active.Load() >= mostClients {
		return &t.others
	}
	c, known := t.of.LoadOrStore(id, new(client))
	if !known {
		t.active.Add(1)
	}
	return c.(*client)
}

// usageWeight is the weight of the latest decision in the mean.
const usageWeight = 1.0 / 16

// used records the share of its limit that the client has used, from a decision of the limiter.
func (t *clients) used(id string, usage float64) {
	c := t.find(id)
	c.asked.Store(true)
	before := math.Float64frombits(c.usage.Load())
	c.usage.Store(math.Float64bits(before + usageWeight*(min(usage, 1)-before))) // a decision lost in a race changes little
}

// standing counts a request and returns its standing.
func (t *clients) standing(r *Request, elapsed float64) int {
	c := t.find(r.sender())
	t.count(c)
	return t.look(r, c, elapsed)
}

// count counts a request of a sender.
func (t *clients) count(c *client) {
	c.sent.now.Add(1)
	t.sent.now.Add(1)
}

// look returns the standing of a request without counting it. c is its sender.
func (t *clients) look(r *Request, c *client, elapsed float64) int {
	average := t.sent.estimate(elapsed) / float64(max(1, t.active.Load()))
	share := c.sent.estimate(elapsed) / max(1, average)
	if r.Source != "" {
		c = t.find(r.ClientID) // the limits belong to the client, not the source
	}
	return standing(math.Float64frombits(c.usage.Load()), share)
}

// nextPeriod begins a period. It forgets clients that sent nothing in the previous one.
func (t *clients) nextPeriod() {
	t.sent.nextPeriod()
	t.others.nextPeriod()
	t.of.Range(func(id, v any) bool {
		if silent := v.(*client).nextPeriod(); silent {
			t.of.Delete(id)
			t.active.Add(-1)
		}
		return true
	})
}

// nextPeriod begins a period of a client. It reports whether the client was silent in the previous one.
// If the limiter made no decision because all requests were refused here, the usage decays.
func (c *client) nextPeriod() (silent bool) {
	asked := c.asked.Swap(false)
	if !asked {
		c.usage.Store(math.Float64bits(math.Float64frombits(c.usage.Load()) / 2))
	}
	return c.sent.nextPeriod() && !asked
}
