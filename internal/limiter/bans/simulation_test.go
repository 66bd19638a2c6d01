package bans_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/check"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

var (
	simSeed = flag.Uint64("seed", 1, "first seed of the simulations")
	simRuns = flag.Int("runs", 50, "how many simulations")
)

// inForce is the time after which a stored change is in force on every instance.
const inForce = 2 * time.Second

// TestSimulation runs whole clusters in simulated time, each with its own faults and with clocks
// that are wrong by up to a second. A stored ban, or its lifting, is in force within two seconds on
// every instance that lost no message in that time, and on all instances once the faults are over.
// No ban begins twice.
func TestSimulation(t *testing.T) {
	checked := 0
	for i := range *simRuns {
		seed := *simSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checked += simulate(t, seed) })
			if t.Failed() {
				t.Logf("again: go test ./internal/limiter/bans -run TestSimulation -seed %d -runs 1", seed)
			}
		})
	}
	if *simRuns > 10 && checked < 50**simRuns {
		t.Errorf("%d times something was in force in time: the test is blind", checked)
	}
}

// cluster is several instances on one store.
type cluster struct {
	t      *testing.T
	policy *ratelimit.Effective
	store  *faulty

	mu      sync.Mutex // guards the fields below, and the rand of all
	rand    *rand.Rand
	alive   []*process
	started int
	began   map[string]int // by key and time
	checked int
}

func (c *cluster) chance(percent int) bool { return c.draw(100) < percent }

func (c *cluster) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}

// grid divides the times of all denials. The clocks of instances differ by other amounts, so no two
// instances ban in the same millisecond. Such bans would count as one.
const grid = 64 * time.Millisecond

// process is an instance with a clock that is wrong by skew.
type process struct {
	*bans.Bans
	*port
	skew  time.Duration
	loops *background.Group
}

func (p *process) now() time.Time { return time.Now().Add(p.skew) }

func (c *cluster) start() {
	c.started++
	p := &process{port: &port{c: c}, skew: time.Duration(c.draw(31)-15)*grid + time.Duration(c.started)*time.Millisecond}
	down := c.store.become(false)
	defer c.store.become(down)
	b, err := bans.New(c.t.Context(), bans.Options{
		Store: p.port, Counters: counting.NewCounters(1000), Clock: p.now,
		Began: func(b bans.Ban, _ ratelimit.Mode) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.began[about(&b)]++
		},
	})
	if err != nil { // a message was lost
		return
	}
	p.Bans, p.loops = b, background.NewGroup(c.t.Context(), slog.New(slog.DiscardHandler), nil)
	p.loops.Go("new bans", b.Run)
	p.loops.Repeat(background.Task{Name: "bans", Every: 1600 * time.Millisecond, Do: b.Refresh})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive = append(c.alive, p)
}

// about identifies a ban.
func about(b *bans.Ban) string { return fmt.Sprint(b.Key, " ", b.Since.UnixMilli()) }

func (c *cluster) members() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.alive)
}

func (c *cluster) any() *process { all := c.members(); return all[c.draw(len(all))] }

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func simulate(t *testing.T, seed uint64) (checked int) {
	t.Helper()
	c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 0)), policy: rule(t), began: map[string]int{}}
	c.store = &faulty{c: c, stored: map[ratelimit.Key]bans.Ban{}, updated: map[ratelimit.Key]time.Time{}, lost: []int{0, 2, 10}[seed%3]}
	for range 2 + c.draw(5) {
		c.start()
	}
	if len(c.alive) == 0 {
		return 0
	}
	for range 150 {
		c.event()
		wait(time.Until(time.Now().Truncate(grid).Add(time.Duration(1+c.draw(48)) * grid)))
	}
	c.store.become(false)
	c.store.loses(0)
	wait(10 * time.Second) // lost messages time out
	wait(inForce)
	for _, key := range keys() {
		if b, ok := c.store.get(key); ok {
			for _, p := range c.members() {
				c.compare(p, &b)
			}
		}
	}
	for _, p := range c.members() {
		check.Equal(t, "waiting", p.Stats().Waiting, 0)
		p.loops.Cancel()
		p.loops.Wait()
	}
	for ban, n := range c.began {
		check.Equal(t, "times that "+ban+" began", n, 1)
	}
	return c.checked
}

func keys() (all []ratelimit.Key) {
	for i := range 5 {
		all = append(all, ratelimit.Key{ClientID: "shop", Username: fmt.Sprint("u", i)})
	}
	return all
}

// event makes one random thing happen to the cluster.
func (c *cluster) event() {
	p, key := c.any(), keys()[c.draw(5)]
	switch c.draw(12) {
	case 0:
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
		_, _, _ = p.Lift(ctx, key, c.chance(50))
		cancel()
	case 1:
		c.store.become(c.chance(30))
	case 2:
		c.start()
	case 3:
		c.end(p)
	case 4: // at several instances at once
		for _, p := range c.members() {
			c.provoke(p, key)
		}
	default:
		c.provoke(p, key)
	}
}

func (c *cluster) provoke(p *process, key ratelimit.Key) {
	for range 3 {
		if _, banned := p.Decide(p.now(), key, c.policy); !banned {
			p.Denied(p.now(), key, c.policy)
		}
	}
}

// end kills an instance, but not the last one.
func (c *cluster) end(p *process) {
	c.mu.Lock()
	last := len(c.alive) == 1
	if !last {
		c.alive = slices.DeleteFunc(slices.Clone(c.alive), func(other *process) bool { return other == p })
	}
	c.mu.Unlock()
	if !last {
		p.loops.Cancel()
		p.loops.Wait()
	}
}

// follow compares the instances two seconds after a change was stored.
func (c *cluster) follow(b bans.Ban) {
	were := c.members()
	time.AfterFunc(inForce, func() {
		now, ok := c.store.get(b.Key)
		if !ok || now.Version != b.Version {
			return
		}
		alive := c.members()
		for _, p := range were {
			if slices.Contains(alive, p) && p.clean(inForce) && p.Stats().Waiting == 0 {
				c.compare(p, &b)
			}
		}
	})
}

// compare fails the test if an instance does not decide according to a stored ban.
func (c *cluster) compare(p *process, b *bans.Ban) {
	at := p.now()
	d, banned := p.Decide(at, b.Key, c.policy)
	if want := b.Active(at); banned != want || banned && d.RetryAfter != b.Until.Sub(at) {
		c.t.Errorf("%v until %v: banned %v for %v at %v", b.Key, b.Until, banned, d.RetryAfter, at)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checked++
}

// faulty is the store. It is slow and loses messages.
type faulty struct {
	c *cluster

	mu      sync.Mutex
	down    bool
	lost    int // messages in a hundred
	stored  map[ratelimit.Key]bans.Ban
	updated map[ratelimit.Key]time.Time
}

func (f *faulty) become(down bool) (was bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, f.down = f.down, down
	return was
}

func (f *faulty) loses(percent int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = percent
}

func (f *faulty) get(k ratelimit.Key) (bans.Ban, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.stored[k]
	return b, ok
}

// port is the connection of an instance to the store.
type port struct {
	c *cluster

	mu     sync.Mutex
	failed time.Time // when the last call failed
	calls  map[int]time.Time
	number int
}

// clean reports whether no call failed within d and no call is running late.
func (p *port) clean(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, began := range p.calls {
		if time.Since(began) > 100*time.Millisecond {
			return false
		}
	}
	return time.Since(p.failed) > d
}

// timeout is the timeout of an operation.
const timeout = 3 * time.Second

// call executes an operation on the store if the request arrives. It returns an error if the reply
// does not arrive.
func (p *port) call(ctx context.Context, do func(f *faulty) error) error {
	f := p.c.store
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p.mu.Lock()
	n := p.number
	p.number++
	if p.calls == nil {
		p.calls = map[int]time.Time{}
	}
	p.calls[n] = time.Now()
	p.mu.Unlock()
	err := p.travel(ctx)
	if err == nil {
		f.mu.Lock()
		err = do(f)
		f.mu.Unlock()
		if lost := p.travel(ctx); lost != nil {
			err = lost
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, n)
	if ctx.Err() != nil {
		p.failed = time.Now()
	}
	return err
}

// travel delivers a message or loses it.
func (p *port) travel(ctx context.Context) error {
	f := p.c.store
	f.mu.Lock()
	lost := f.lost
	if f.down {
		lost = 100
	}
	f.mu.Unlock()
	if !p.c.chance(lost) {
		select {
		case <-time.After(time.Duration(1+p.c.draw(20)) * time.Millisecond):
			return nil
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	return errAway
}

// Ban implements [bans.Store].
func (p *port) Ban(ctx context.Context, k ratelimit.Key) (b bans.Ban, err error) {
	err = p.call(ctx, func(f *faulty) error {
		var ok bool
		if b, ok = f.stored[k]; !ok {
			return bans.ErrNotFound
		}
		return nil
	})
	return b, err
}

// PutBan implements [bans.Store].
func (p *port) PutBan(ctx context.Context, b bans.Ban) error {
	return p.call(ctx, func(f *faulty) error {
		if f.stored[b.Key].Version < b.Version {
			f.stored[b.Key], f.updated[b.Key] = b, time.Now()
			go p.c.follow(b)
		}
		return nil
	})
}

// Bans implements [bans.Store].
func (p *port) Bans(ctx context.Context, since time.Time) (list []bans.Ban, err error) {
	err = p.call(ctx, func(f *faulty) error {
		for k, b := range f.stored {
			if since.IsZero() || !f.updated[k].Before(since.Add(-10*time.Second)) {
				list = append(list, b)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Now implements [bans.Store].
func (p *port) Now(ctx context.Context) (now time.Time, err error) {
	err = p.call(ctx, func(*faulty) error {
		now = time.Now()
		return nil
	})
	return now, err
}
