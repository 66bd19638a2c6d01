package syncer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

// network connects the instances to the database, and loses messages. Like MongoDB it handles the
// writes of an exchange as one command and its reads as another. Each of them can fail on its own.
type network struct {
	db     *memstore.Store
	oneWay time.Duration // how long a message takes
	jitter time.Duration // how much longer any message may take

	mu       sync.Mutex
	faults   faults
	down     bool                          // no message arrives
	noWrites bool                          // the server answers, and refuses to write
	ahead    time.Duration                 // how far the server's clock is ahead
	liesTo   *port                         // the one instance that gets the wrong time; nil: all
	broken   map[ratelimit.CounterID]bool  // statements that fail by themselves
	applied  map[ratelimit.CounterID]int64 // everything that was ever added
	writes   int                           // that arrived
	commands int                           // that arrived
	rounds   map[string]int                // tries of each write, by writer and sequence
	fell     []string                      // live frames that a write has made smaller
}

func newNetwork(oneWay time.Duration) *network {
	return &network{
		db: &memstore.Store{}, oneWay: oneWay, broken: map[ratelimit.CounterID]bool{},
		applied: map[ratelimit.CounterID]int64{}, rounds: map[string]int{},
	}
}

// faults are the chances of each in a hundred commands.
type faults struct {
	loseRequest, loseReply, delay, unsure int
}

// latest is when a delayed request arrives at the latest.
const latest = 30 * time.Second

// become changes the faults.
func (n *network) become(f faults, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults, n.down = f, down
}

// refuse makes the server refuse every write, or accept writes again.
func (n *network) refuse(writes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.noWrites = writes
}

// lie makes the clock of the server wrong for a member, or for all if m is nil. The member also reads
// every Beaten wrong. Who is alive stays right: a Beaten is compared only with other Beaten times.
func (n *network) lie(m *member, ahead time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ahead, n.liesTo = ahead, nil
	if m != nil {
		n.liesTo = m.port
	}
}

// expire deletes the documents that have expired by the clock of the server.
func (n *network) expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if n.liesTo == nil {
		now = now.Add(n.ahead)
	}
	n.db.Expire(now)
}

// erase deletes all documents.
func (n *network) erase() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.db.Expire(time.Now().Add(1000 * time.Hour))
}

// breakStatements makes the writes of one counter fail, or work again.
func (n *network) breakStatements(id ratelimit.CounterID, broken bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken[id] = broken
}

func (n *network) now() (f faults, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults, n.down
}

var (
	errNetwork = errors.New("network: no answer")
	errServer  = errors.New("server: not primary")
)

// port is the connection of one instance to the database, with its own random source.
type port struct {
	net  *network
	mu   sync.Mutex
	rand *rand.Rand
	cut  func() bool   // no message of this instance arrives
	lean float64       // part of oneWay by which requests take longer and answers less
	far  time.Duration // extra time for both, compared with the rest of the network
}

func newPort(net *network, seed uint64) *port {
	return &port{net: net, rand: rand.New(rand.NewPCG(seed, 1))}
}

func (p *port) chance(percent int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rand.IntN(100) < percent
}

func (p *port) between(a, b time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return a + time.Duration(p.rand.Int64N(int64(b-a)+1))
}

// travel waits for a message to arrive.
func travel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send delays a request. It returns an error if the request does not arrive in time.
func (p *port) send(ctx context.Context) error {
	f, down := p.net.now()
	if down || p.chance(f.loseRequest) || p.cut != nil && p.cut() {
		<-ctx.Done()
		return errNetwork
	}
	return travel(ctx, p.there())
}

// there returns how long a request takes, and homewards an answer.
func (p *port) there() time.Duration { return p.far + p.leaning(1+p.lean) }

func (p *port) homewards() time.Duration { return p.far + p.leaning(1-p.lean) }

func (p *port) leaning(part float64) time.Duration {
	least := time.Duration(float64(p.net.oneWay) * part)
	if p.net.jitter == 0 {
		return least
	}
	return p.between(least, least+p.net.jitter)
}

// answer delays a reply.
func (p *port) answer(ctx context.Context) error {
	if f, _ := p.net.now(); p.chance(f.loseReply) {
		<-ctx.Done()
		return errNetwork
	}
	return travel(ctx, p.homewards())
}

// Exchange implements [exchange.Store].
func (p *port) Exchange(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	if err := exchange.CheckItems(items); err != nil {
		return nil, err
	}
	var writes, reads []exchange.Item
	for _, it := range items {
		if it.Write != nil {
			writes = append(writes, exchange.Item{ID: it.ID, Write: it.Write})
		}
		if it.Read {
			reads = append(reads, exchange.Item{ID: it.ID, Read: true})
		}
	}
	results := make([]exchange.Result, len(items))
	var commands sync.WaitGroup
	var written, read []exchange.Result
	var writeErr, readErr error
	commands.Go(func() { written, writeErr = p.write(ctx, writes) })
	commands.Go(func() { read, readErr = p.read(ctx, reads) })
	commands.Wait()
	w, r := 0, 0
	for i, it := range items {
		if it.Write != nil {
			results[i].Err = writeErr
			if writeErr == nil {
				results[i].Status, results[i].Err = written[w].Status, written[w].Err
			}
			w++
		}
		if it.Read {
			if readErr == nil {
				results[i].Read, results[i].Record = true, read[r].Record
			}
			r++
		}
	}
	if writeErr != nil {
		return results, writeErr
	}
	return results, readErr
}

func (p *port) write(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if f, _ := p.net.now(); p.chance(f.delay) { // it arrives long after the sender gave up
		time.AfterFunc(p.between(0, latest), func() { _, _ = p.net.write(items) })
		<-ctx.Done()
		return nil, errNetwork
	}
	if err := p.send(ctx); err != nil {
		return nil, err
	}
	out, err := p.net.write(items)
	if e := p.answer(ctx); e != nil {
		return nil, e
	}
	f, _ := p.net.now()
	for i := range out {
		if p.chance(f.unsure) {
			out[i] = exchange.Result{Status: exchange.Unknown, Err: errNetwork}
		}
	}
	return out, err
}

// write applies the writes that arrived and records them.
func (n *network) write(items []exchange.Item) ([]exchange.Result, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.commands++
	if n.noWrites {
		return nil, errServer
	}
	n.writes += len(items)
	out := make([]exchange.Result, len(items))
	for i, it := range items {
		n.rounds[it.Write.Writer+strconv.FormatInt(it.Write.Seq, 10)]++
		if n.broken[it.ID] {
			out[i] = exchange.Result{Status: exchange.Unknown, Err: errServer}
			continue
		}
		before := n.read(it.ID)
		one, err := n.db.Exchange(context.Background(), items[i:i+1])
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
		n.compare(before, n.read(it.ID))
		if out[i].Status == exchange.Applied && !it.Write.Rewrite {
			for _, f := range it.Write.Delta {
				n.applied[it.ID] += f.Count
			}
		}
	}
	return out, nil
}

// read returns the document of a counter, or nil.
func (n *network) read(id ratelimit.CounterID) *exchange.Record {
	out, err := n.db.Exchange(context.Background(), []exchange.Item{{ID: id, Read: true}})
	if err != nil {
		return nil
	}
	return out[0].Record
}

// compare records a live frame with a count that the write reduced. If the write changes the length
// of the frames, it compares the sums of all frames instead.
func (n *network) compare(before, after *exchange.Record) {
	if before == nil {
		return
	}
	sum := func(r *exchange.Record, live bool) (n int64) {
		now := time.Now().UnixMilli()
		for _, f := range r.Frames {
			if start := ratelimit.FrameStart(f.Name); !live || start <= now && start+r.Frame > now {
				n += f.Count
			}
		}
		return n
	}
	live := before.Frame == after.Frame
	if sum(after, live) < sum(before, live) {
		n.fell = append(n.fell, fmt.Sprintf("%v: %v became %v", before.ID, before.Frames, after.Frames))
	}
}

func (p *port) read(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := p.send(ctx); err != nil {
		return nil, err
	}
	p.net.mu.Lock()
	p.net.commands++
	p.net.mu.Unlock()
	out, err := p.net.db.Exchange(context.Background(), items)
	if e := p.answer(ctx); e != nil {
		return nil, e
	}
	return out, err
}

// Now implements [exchange.Store].
func (p *port) Now(ctx context.Context) (time.Time, error) {
	if err := p.send(ctx); err != nil {
		return time.Time{}, err
	}
	now, err := p.net.db.Now(ctx)
	return now.Add(p.lied()), errors.Join(err, travel(ctx, p.homewards()))
}

// lied returns how far the clock of the server is wrong for this instance.
func (p *port) lied() time.Duration {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if p.net.liesTo == nil || p.net.liesTo == p {
		return p.net.ahead
	}
	return 0
}

// Beat implements [syncer.Instances].
func (p *port) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) ([]syncer.Instance, string, error) {
	if err := p.send(ctx); err != nil {
		return nil, "", err
	}
	p.net.mu.Lock()
	refused := p.net.noWrites
	p.net.mu.Unlock()
	if refused {
		return nil, "", errServer
	}
	alive, previous, err := p.net.db.Beat(ctx, self, ttl)
	for i := range alive {
		alive[i].Beaten = alive[i].Beaten.Add(p.lied())
	}
	if e := p.answer(ctx); e != nil {
		return nil, "", e
	}
	return alive, previous, err
}

// Leave implements [syncer.Instances].
func (p *port) Leave(ctx context.Context, id string) error {
	if err := p.send(ctx); err != nil {
		return err
	}
	return p.net.db.Leave(ctx, id)
}
