package admission

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// clients knows what each client sent lately, and how near its limit it was. It is for clients that are registered,
// so their number is bounded; those that are silent are forgotten.
type clients struct {
	of     sync.Map // client ID -> *client
	active atomic.Int64
	sent   window // by all of them
}

// client is what is known of one client. Its fields are changed without a lock, so figures may be off by those of a
// request at the turn of a period.
type client struct {
	sent  window
	usage atomic.Uint64 // float64: mean share of the limit that its decisions had used, the latest weighing most
}

// window counts over a minute that slides: the current period, and what of the one before is still in the window.
type window struct{ now, before atomic.Int64 }

const period = time.Minute

func (w *window) turn() (empty bool) {
	w.before.Store(w.now.Swap(0))
	return w.before.Load() == 0
}

// estimate counts the last minute; elapsed is the share of the current one that is over.
func (w *window) estimate(elapsed float64) float64 {
	return float64(w.now.Load()) + (1-elapsed)*float64(w.before.Load())
}

// count counts a request of the client.
func (t *clients) count(id string) *client {
	c := t.find(id)
	c.sent.now.Add(1)
	t.sent.now.Add(1)
	return c
}

func (t *clients) find(id string) *client {
	if c, ok := t.of.Load(id); ok {
		return c.(*client)
	}
	c, known := t.of.LoadOrStore(id, new(client))
	if !known {
		t.active.Add(1)
	}
	return c.(*client)
}

// usageWeight is the weight of the latest decision in the mean.
const usageWeight = 1.0 / 16

// used takes the share of its limit that the client has used, by a decision of the limiter.
func (t *clients) used(id string, usage float64) {
	c := t.find(id)
	before := math.Float64frombits(c.usage.Load())
	c.usage.Store(math.Float64bits(before + usageWeight*(min(usage, 1)-before))) // a decision lost in a race changes little
}

// standing is that of a request of the client.
func (t *clients) standing(c *client, elapsed float64) int {
	average := t.sent.estimate(elapsed) / float64(max(1, t.active.Load()))
	return standing(math.Float64frombits(c.usage.Load()), c.sent.estimate(elapsed)/max(1, average))
}

// turn begins a period. Clients that sent nothing in the last one are forgotten.
func (t *clients) turn() {
	t.sent.turn()
	t.of.Range(func(id, v any) bool {
		if c := v.(*client); c.sent.turn() {
			t.of.Delete(id)
			t.active.Add(-1)
		}
		return true
	})
}
