package clusters

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

// network is the connection from the instances to the store.
type network struct {
	latency, jitter        time.Duration // a message takes latency, and longer by an exponentially distributed time with the mean jitter
	loseRequest, loseReply float64       // fractions of the commands
	down                   []outage
}

// outage is a period, since the first request, when no message arrives.
type outage struct{ from, to time.Duration }

// database is the store behind a network that loses messages. Like MongoDB it handles the writes of an exchange as one
// command and its reads as another. Both are under way at the same time, and each can fail on its own.
type database struct {
	network

	store    memstore.Store
	applied  atomic.Int64 // counts that writes have added
	repaired atomic.Bool  // all requests were sent, and faults have ended
}

// newDatabase returns an empty database. It deletes expired documents each minute until ctx ends, as MongoDB does.
func newDatabase(ctx context.Context, cfg network) *database {
	d := &database{network: cfg}
	go func() {
		each := time.NewTicker(time.Minute)
		defer each.Stop()
		for {
			select {
			case <-each.C:
				d.store.Expire(time.Now())
			case <-ctx.Done():
				return
			}
		}
	}()
	return d
}

// unreachable reports whether no message arrives now.
func (d *database) unreachable() bool {
	now := time.Since(begin)
	for _, o := range d.down {
		if now >= o.from && now < o.to {
			return !d.repaired.Load()
		}
	}
	return false
}

// port is the connection of one instance to the store, with its own random numbers. It implements [exchange.Store] and
// [syncer.Instances].
type port struct {
	db *database

	mu        sync.Mutex
	rand      *rand.Rand
	cost      cost
	conflicts []ratelimit.Key // of conflicting writes, since takeConflicts
}

const (
	commandBytes = 400 // of a command and its reply, without writes, reads and documents
	aliveBytes   = 100 // of each live instance in the reply to a heartbeat
)

var errNoAnswer = errors.New("simulated network: no answer")

func (p *port) costs() cost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

// add adds calls to the costs.
func (p *port) add(c cost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cost.add(&c, 1)
}

// lost reports whether a message is lost, with the given chance.
func (p *port) lost(chance float64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.db.unreachable() || chance > 0 && p.rand.Float64() < chance && !p.db.repaired.Load()
}

// travel returns how long a message takes.
func (p *port) travel() time.Duration {
	if p.db.jitter == 0 {
		return p.db.latency
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.db.latency + time.Duration(p.rand.ExpFloat64()*float64(p.db.jitter))
}

// send sends a command and waits for its reply, until ctx ends. The store carries the command out when it arrives, even
// if nobody waits any more. Request or reply may never arrive.
func send[T any](ctx context.Context, p *port, carryOut func(context.Context) (T, error)) (value T, err error) {
	p.add(cost{commands: 1, bytes: commandBytes})
	type reply struct {
		value T
		err   error
	}
	replies := make(chan reply, 1)
	arrive := func() {
		if p.db.unreachable() {
			return
		}
		var r reply
		r.value, r.err = carryOut(context.WithoutCancel(ctx))
		if !p.lost(p.db.loseReply) {
			time.AfterFunc(p.travel(), func() {
				if !p.db.unreachable() {
					replies <- r
				}
			})
		}
	}
	if !p.lost(p.db.loseRequest) {
		time.AfterFunc(p.travel(), arrive)
	}
	select {
	case r := <-replies:
		return r.value, r.err
	case <-ctx.Done():
		return value, errNoAnswer
	}
}

// Exchange implements [exchange.Store].
func (p *port) Exchange(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	var writes, reads []exchange.Item
	for _, it := range items {
		if it.Write != nil {
			writes = append(writes, exchange.Item{ID: it.ID, Write: it.Write})
			p.add(cost{writes: 1, bytes: writeBytes(&it)})
		}
		if it.Read {
			reads = append(reads, exchange.Item{ID: it.ID, Read: true})
		}
	}
	p.add(cost{reads: int64(len(reads))})
	var written, read []exchange.Result
	var writeErr, readErr error
	var commands sync.WaitGroup
	commands.Go(func() { written, writeErr = p.command(ctx, writes) })
	commands.Go(func() { read, readErr = p.command(ctx, reads) })
	commands.Wait()
	all := make([]exchange.Result, len(items))
	w, r := 0, 0
	for i := range items {
		if items[i].Write != nil {
			if all[i].Err = writeErr; writeErr == nil {
				all[i].Status, all[i].Err = written[w].Status, written[w].Err
				p.noteConflict(&items[i], all[i].Status)
			}
			w++
		}
		if items[i].Read {
			if readErr == nil {
				all[i].Read, all[i].Record = true, read[r].Record
			}
			r++
		}
	}
	return all, errors.Join(writeErr, readErr)
}

// command sends the writes or the reads of an exchange.
func (p *port) command(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return send(ctx, p, func(ctx context.Context) ([]exchange.Result, error) {
		results, err := p.db.store.Exchange(ctx, items)
		for i := range results {
			if w := items[i].Write; w != nil && results[i].Status == exchange.Applied && !w.Rewrite {
				for _, f := range w.Delta {
					p.db.applied.Add(f.Count)
				}
			}
			if results[i].Read {
				p.add(cost{bytes: readBytes(&items[i], results[i].Record)})
			}
		}
		return results, err
	})
}

// noteConflict records the key of a write with a conflict, for a plain instance.
func (p *port) noteConflict(it *exchange.Item, s exchange.Status) {
	if s == exchange.Conflict {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.conflicts = append(p.conflicts, ratelimit.Key{ClientID: it.ID.ClientID, Username: it.ID.Username})
	}
}

// takeConflicts returns the keys with conflicting writes, and forgets them.
func (p *port) takeConflicts() (keys []ratelimit.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys, p.conflicts = p.conflicts, nil
	return keys
}

// Now implements [exchange.Store].
func (p *port) Now(ctx context.Context) (time.Time, error) {
	return send(ctx, p, func(context.Context) (time.Time, error) { return time.Now(), nil })
}

// Beat implements [syncer.Instances].
func (p *port) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	type beat struct {
		alive    []syncer.Instance
		previous string
	}
	b, err := send(ctx, p, func(ctx context.Context) (b beat, err error) {
		b.alive, b.previous, err = p.db.store.Beat(ctx, self, ttl)
		p.add(cost{bytes: aliveBytes * int64(len(b.alive))})
		return b, err
	})
	return b.alive, b.previous, err
}

// Leave implements [syncer.Instances].
func (p *port) Leave(ctx context.Context, id string) error {
	_, err := send(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.db.store.Leave(ctx, id) })
	return err
}
