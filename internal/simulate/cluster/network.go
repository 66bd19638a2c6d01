package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/simtime"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

// network connects the instances to the store, and loses messages. Like MongoDB it handles the
// writes of an exchange as one command and its reads as another. Both are under way at the same
// time, and each can fail on its own.
type network struct {
	Network

	loop    *simtime.Loop
	begin   time.Time // reference time of the outages
	store   memstore.Store
	applied int64 // counts that writes have added
	over    bool  // all requests were sent, and faults have ended
}

// expireEvery is how often the store deletes expired documents. A database does so about once a
// minute.
const expireEvery = time.Minute

func newNetwork(loop *simtime.Loop, begin time.Time, cfg Network) *network {
	n := &network{Network: cfg, loop: loop, begin: begin}
	n.store.Clock = loop.Now
	var expire func()
	expire = func() {
		n.store.Expire(loop.Now())
		loop.AfterFunc(expireEvery, expire)
	}
	loop.AfterFunc(expireEvery, expire)
	return n
}

// down reports whether no message arrives now.
func (n *network) down() bool {
	now := n.loop.Now().Sub(n.begin)
	for _, o := range n.Down {
		if now >= o.From && now < o.To {
			return !n.over
		}
	}
	return false
}

// port is the connection of one instance to the store, with its own random numbers. It implements
// [syncer.Store] and [syncer.Instances].
type port struct {
	net  *network
	rand *rand.Rand
	cost Cost

	plain     bool
	conflicts []ratelimit.Key // conflicting writes of a plain instance, since takeConflicts
}

var errNoAnswer = errors.New("simulated network: no answer")

// lost reports whether a message is lost, with the given chance.
func (p *port) lost(chance float64) bool {
	return p.net.down() || chance > 0 && p.rand.Float64() < chance && !p.net.over
}

// travel returns how long a message takes.
func (p *port) travel() time.Duration {
	if p.net.Jitter == 0 {
		return p.net.Latency
	}
	return p.net.Latency + time.Duration(p.rand.ExpFloat64()*float64(p.net.Jitter))
}

// send sends a command. The store runs carryOut when the command arrives, and answered is called
// when the reply arrives. Either may never happen.
func (p *port) send(ctx context.Context, carryOut func(context.Context), answered func()) {
	p.cost.Commands++
	p.cost.Bytes += commandBytes
	if p.lost(p.net.LoseRequest) {
		return
	}
	p.net.loop.AfterFunc(p.travel(), func() {
		if p.net.down() {
			return
		}
		carryOut(context.WithoutCancel(ctx))
		if !p.lost(p.net.LoseReply) {
			p.net.loop.AfterFunc(p.travel(), func() {
				if !p.net.down() {
					answered()
				}
			})
		}
	})
}

// forever is longer than any call waits.
const forever = 1000 * time.Hour

// call sends a command and waits for its reply, until ctx ends.
func (p *port) call(ctx context.Context, carryOut func(context.Context)) error {
	answered, signal := false, p.net.loop.NewSignal()
	p.send(ctx, carryOut, func() {
		answered = true
		signal.Set()
	})
	for !answered && signal.Wait(ctx, forever) {
	}
	if !answered {
		return errNoAnswer
	}
	return nil
}

// Exchange implements [syncer.Store].
func (p *port) Exchange(ctx context.Context, items []syncer.Item) ([]syncer.Result, error) {
	var writes, reads []syncer.Item
	for _, it := range items {
		if it.Write != nil {
			writes = append(writes, syncer.Item{ID: it.ID, Write: it.Write})
			p.cost.Bytes += WriteBytes(&it)
		}
		if it.Read {
			reads = append(reads, syncer.Item{ID: it.ID, Read: true})
		}
	}
	p.cost.Writes += int64(len(writes))
	p.cost.Reads += int64(len(reads))
	written, read := &command{of: writes}, &command{of: reads}
	signal := p.net.loop.NewSignal()
	for _, c := range []*command{written, read} {
		if len(c.of) > 0 {
			p.send(ctx, func(ctx context.Context) { p.carryOut(ctx, c) }, func() { c.answered = true; signal.Set() })
		} else {
			c.answered = true
		}
	}
	for (!written.answered || !read.answered) && signal.Wait(ctx, forever) {
	}
	return p.results(items, written, read)
}

// command is a part of an exchange.
type command struct {
	of       []syncer.Item
	results  []syncer.Result
	err      error
	answered bool
}

// carryOut executes a command in the store.
func (p *port) carryOut(ctx context.Context, c *command) {
	c.results, c.err = p.net.store.Exchange(ctx, c.of)
	for i := range c.results {
		if w := c.of[i].Write; w != nil && c.results[i].Status == syncer.Applied && !w.Rewrite {
			for _, f := range w.Delta {
				p.net.applied += f.Count
			}
		}
		if c.results[i].Read {
			p.cost.Bytes += ReadBytes(&c.of[i], c.results[i].Record)
		}
	}
}

// results returns the results of an exchange.
func (p *port) results(items []syncer.Item, written, read *command) (all []syncer.Result, err error) {
	all = make([]syncer.Result, len(items))
	for _, c := range []*command{written, read} {
		if !c.answered {
			c.results, c.err = nil, errNoAnswer
		}
		err = errors.Join(err, c.err)
	}
	w, r := 0, 0
	for i := range items {
		if items[i].Write != nil {
			if all[i].Err = written.err; written.err == nil {
				all[i].Status, all[i].Err = written.results[w].Status, written.results[w].Err
				p.noteConflict(&items[i], all[i].Status)
			}
			w++
		}
		if items[i].Read {
			if read.err == nil {
				all[i].Read, all[i].Record = true, read.results[r].Record
			}
			r++
		}
	}
	return all, err
}

// noteConflict records the key of a write with a conflict, for a plain instance.
func (p *port) noteConflict(it *syncer.Item, s syncer.Status) {
	if s == syncer.Conflict && p.plain {
		p.conflicts = append(p.conflicts, ratelimit.Key{ClientID: it.ID.ClientID, Username: it.ID.Username})
	}
}

// takeConflicts returns the keys of a plain instance with conflicting writes, and forgets them.
func (p *port) takeConflicts() (keys []ratelimit.Key) {
	keys, p.conflicts = p.conflicts, nil
	return keys
}

// Now implements [syncer.Store].
func (p *port) Now(ctx context.Context) (now time.Time, err error) {
	err = p.call(ctx, func(context.Context) { now = p.net.loop.Now() })
	return now, err
}

// Beat implements [syncer.Instances].
func (p *port) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	var failed error
	err = p.call(ctx, func(ctx context.Context) {
		alive, previous, failed = p.net.store.Beat(ctx, self, ttl)
		p.cost.Bytes += aliveBytes * int64(len(alive))
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, "", err
	}
	return alive, previous, nil
}

// Alive implements [syncer.Instances].
func (p *port) Alive(ctx context.Context, ttl time.Duration) (alive []syncer.Instance, err error) {
	var failed error
	err = p.call(ctx, func(ctx context.Context) { alive, failed = p.net.store.Alive(ctx, ttl) })
	return alive, errors.Join(err, failed)
}

// Leave implements [syncer.Instances].
func (p *port) Leave(ctx context.Context, id string) error {
	var failed error
	err := p.call(ctx, func(ctx context.Context) { failed = p.net.store.Leave(ctx, id) })
	return errors.Join(err, failed)
}
