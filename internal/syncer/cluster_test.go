package syncer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

// network stands between the instances and the database, and loses things.
type network struct {
	db     *memstore.Store
	oneWay time.Duration // a message takes this long

	mu      sync.Mutex
	faults  faults
	down    bool
	applied map[ratelimit.CounterID]int64 // everything that was ever added
	writes  int                           // that arrived
	rounds  map[string]int                // tries of each write, by instance and sequence
}

// faults are the chances of each in a hundred calls.
type faults struct {
	loseRequest, loseReply, delay, unsure int
}

// latest is when a delayed request arrives at last.
const latest = 30 * time.Second

// become changes the faults.
func (n *network) become(f faults, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults, n.down = f, down
}

func (n *network) now() faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults
}

var errNetwork = errors.New("network: no answer")

// port is one instance's way to the database, with its own chance.
type port struct {
	net  *network
	mu   sync.Mutex
	rand *rand.Rand
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
func (p *port) travel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send makes the way there; false if the request does not arrive in time.
func (p *port) send(ctx context.Context) error {
	p.net.mu.Lock()
	down := p.net.down
	p.net.mu.Unlock()
	if down || p.chance(p.net.now().loseRequest) {
		<-ctx.Done()
		return errNetwork
	}
	return p.travel(ctx, p.net.oneWay)
}

// Apply implements [syncer.Store].
func (p *port) Apply(ctx context.Context, instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
	if p.chance(p.net.now().delay) { // it arrives when the sender has long given up
		time.AfterFunc(p.between(0, latest), func() { _, _ = p.net.apply(instance, writes) })
		<-ctx.Done()
		return nil, errNetwork
	}
	if err := p.send(ctx); err != nil {
		return nil, err
	}
	out, err := p.net.apply(instance, writes)
	if p.chance(p.net.now().loseReply) {
		<-ctx.Done()
		return nil, errNetwork
	}
	for i := range out {
		if p.chance(p.net.now().unsure) {
			out[i] = syncer.Outcome{Status: syncer.Unknown, Err: errNetwork}
		}
	}
	if e := p.travel(ctx, p.net.oneWay); e != nil {
		return nil, e
	}
	return out, err
}

// apply applies what arrived, and keeps account of it.
func (n *network) apply(instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out, err := n.db.Apply(context.Background(), instance, writes)
	n.writes += len(writes)
	if n.applied == nil {
		n.applied, n.rounds = map[ratelimit.CounterID]int64{}, map[string]int{}
	}
	for i := range writes {
		n.rounds[instance+strconv.FormatInt(writes[i].Seq, 10)]++
	}
	for i, o := range out {
		if o.Status == syncer.Applied {
			for _, f := range writes[i].Delta {
				n.applied[writes[i].ID] += f.Count
			}
		}
	}
	return out, err
}

// Load implements [syncer.Store].
func (p *port) Load(ctx context.Context, ids []ratelimit.CounterID) ([]syncer.Record, error) {
	if err := p.send(ctx); err != nil {
		return nil, err
	}
	out, err := p.net.db.Load(ctx, ids)
	if p.chance(p.net.now().loseReply) {
		<-ctx.Done()
		return nil, errNetwork
	}
	if e := p.travel(ctx, p.net.oneWay); e != nil {
		return nil, e
	}
	return out, err
}

// Now implements [syncer.Store].
func (p *port) Now(ctx context.Context) (time.Time, error) {
	if err := p.send(ctx); err != nil {
		return time.Time{}, err
	}
	now, err := p.net.db.Now(ctx)
	return now, errors.Join(err, p.travel(ctx, p.net.oneWay))
}

// Beat implements [syncer.Instances].
func (p *port) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) ([]syncer.Instance, error) {
	if err := p.send(ctx); err != nil {
		return nil, err
	}
	return p.net.db.Beat(ctx, self, ttl)
}

// Leave implements [syncer.Instances].
func (p *port) Leave(ctx context.Context, id string) error {
	if err := p.send(ctx); err != nil {
		return err
	}
	return p.net.db.Leave(ctx, id)
}

// member is one process of a cluster.
type member struct {
	counters *ratelimit.Counters
	syncer   *syncer.Syncer
	now      func() time.Time
}

// maxKeys bounds the memory of a simulated instance.
const maxKeys = 1000

// newMember starts an instance whose clock is wrong by skew.
func newMember(t *testing.T, net *network, seed uint64, skew time.Duration, change func(*syncer.Config)) *member {
	t.Helper()
	m := &member{counters: ratelimit.NewCounters(maxKeys), now: func() time.Time { return time.Now().Add(skew) }}
	cfg := syncer.DefaultConfig()
	cfg.Now, cfg.Seed = m.now, seed
	if change != nil {
		change(&cfg)
	}
	p := &port{net: net, rand: rand.New(rand.NewPCG(seed, 1))}
	m.syncer = syncer.New(m.counters, p, p, cfg)
	m.syncer.Start(t.Context())
	t.Cleanup(m.syncer.Kill) // of those that are still there
	return m
}

// unflushed is what the instance has not written, as far as it knows: in all,
// and of the limit named exact.
func (m *member) unflushed() (all, exact int64) {
	for _, u := range m.counters.Top(m.now(), 1_000_000) {
		all += u.Unflushed
		if u.Limit.Name == "exact" {
			exact += u.Unflushed
		}
	}
	return all, exact
}

// policyOf makes a policy of limits.
func policyOf(tb testing.TB, limits ...ratelimit.Limit) *ratelimit.Effective {
	tb.Helper()
	s := ratelimit.DefaultSettings()
	s.Default.User, s.Default.Client = limits, limits
	p, err := ratelimit.Compile(s)
	require.NoError(tb, err)
	return p.For("any")
}

func keyOf(i int) ratelimit.Key {
	return ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa(i)}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// A burst is over before a spacing has passed. Requests come to three
// instances in turn, every 5 ms, and the database answers within 2 ms.
func TestBurstDoesNotWaitForTheSpacing(t *testing.T) {
	for _, limit := range []int64{10, 100} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := &network{db: &memstore.Store{}, oneWay: time.Millisecond}
				policy := policyOf(t, ratelimit.NewLimit("limit", limit, time.Minute))
				var cluster []*member
				for i := range 3 {
					cluster = append(cluster, load{}.member(t, net, uint64(i), 0))
				}
				wait(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
				admitted := int64(0)
				for i := range int(6 * limit) {
					m := cluster[i%len(cluster)]
					if d := m.counters.Take(m.now(), keyOf(0), policy, 1); d.Outcome == ratelimit.Allowed {
						admitted++
					}
					wait(5 * time.Millisecond)
				}
				require.GreaterOrEqual(t, admitted, limit)
				require.LessOrEqual(t, admitted, limit+3, "of a limit of %d", limit)
				for _, m := range cluster {
					m.syncer.Kill()
				}
			})
		})
	}
}
