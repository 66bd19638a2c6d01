package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// farLimits are limits that no test reaches, of clients whose counts stay and are
// written often.
const farLimits = `
sync: { interval: 50ms }
rate_limit:
  default: { client: [ { name: far, requests: 1000000, window: 24h } ] }
`

// TestEveryTokenIsCounted: whatever is lost or delayed between three processes and
// their database, it has counted exactly the tokens that they have issued.
func TestEveryTokenIsCounted(t *testing.T) {
	t.Parallel()
	clients := []string{"one", "two", "three", "four", "five"}
	c := newCluster(t, farLimits, clients...)
	c.grow(3)
	faults := make([]*faults, len(c.members))
	for i, m := range c.members {
		faults[i] = newFaults(m)
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for _, f := range faults {
		work.Go(func() { every(ctx, 500*time.Millisecond, func(int) { _, _ = f.member.proxy.Deliver() }) })
	}
	for range 3 {
		work.Go(func() { c.turns(ctx, 10*time.Millisecond, clients...) })
	}
	wait(t, 3*time.Second)
	for _, m := range c.members { // the server goes away
		m.proxy.Break()
	}
	wait(t, 2*time.Second)
	for _, m := range c.members {
		m.proxy.Restore()
	}
	check.Eventually(t, "three writes of every server were delayed", func() bool {
		for _, f := range faults {
			if f.count(mongotest.Delay) < 3 {
				return false
			}
		}
		return true
	})
	stop()
	work.Wait()
	c.stop(c.members...) // the faults go on meanwhile
	for _, f := range faults {
		f.late(t)
	}
	check.Equal(t, "tokens that were counted", c.stored(), c.ledger.issued())
	for i, f := range faults {
		t.Logf("server %d: %d writes lost, %d replies, %d delayed", i, f.count(mongotest.LoseRequest), f.count(mongotest.LoseReply), f.count(mongotest.Delay))
	}
}

// faults breaks what a server asks of its database: every other write of counters,
// in each way in turn, and some of the other commands.
type faults struct {
	member *member
	mu     sync.Mutex
	seen   map[string]int          // by command
	writes map[mongotest.Fault]int // what was done to writes of counters
}

func newFaults(m *member) *faults {
	f := &faults{member: m, seen: map[string]int{}, writes: map[mongotest.Fault]int{}}
	m.proxy.Decide(f.next)
	return f
}

// turn is what becomes of commands of each name, again and again.
var turn = map[string][]mongotest.Fault{
	"update":        {1: mongotest.LoseRequest, 3: mongotest.LoseReply, 5: mongotest.Delay},
	"find":          {4: mongotest.LoseRequest, 9: mongotest.LoseReply},
	"findAndModify": {1: mongotest.LoseRequest, 3: mongotest.LoseReply},
}

func (f *faults) next(command string) (fault mongotest.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if faults := turn[command]; faults != nil {
		fault = faults[f.seen[command]%len(faults)]
	}
	f.seen[command]++
	if command == "update" {
		f.writes[fault]++
	}
	return fault
}

func (f *faults) count(fault mongotest.Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes[fault]
}

// late delivers what is still delayed when the server has gone.
func (f *faults) late(t *testing.T) {
	t.Helper()
	if _, err := f.member.proxy.Deliver(); err != nil {
		t.Error(err)
	}
}
