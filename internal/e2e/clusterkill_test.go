package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestKillOneOfThree: kill -9 costs at most what the process has counted since it
// wrote last.
func TestKillOneOfThree(t *testing.T) {
	t.Parallel()
	c := newCluster(t, farLimits, "one", "two")
	c.grow(3)
	killed := c.members[1]
	f := newFlushes()
	killed.proxy.Alter(mongotest.Alteration{Reply: f.reply})
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { c.turns(ctx, 5*time.Millisecond, "one", "two") })
	check.Eventually(t, "the counts of both clients are written", func() bool { return f.written("one") >= 5 && f.written("two") >= 5 })
	killed.kill()
	c.leave(killed)
	at := c.ledger.count(func(*request) bool { return true })
	check.Eventually(t, "requests continue", func() bool { return c.ledger.count(func(*request) bool { return true }) > at+20 })
	stop()
	load.Wait()
	c.stop(c.members[0], c.members[2])

	stored := c.stored()
	for _, client := range []string{"one", "two"} {
		own := func(r *request) bool { return r.client == client && r.member == killed.number }
		issued := c.ledger.count(func(r *request) bool { return own(r) && r.outcome == admitted })
		others := c.ledger.issued()[client] - issued
		applied, until := f.state(client)
		due := c.ledger.count(func(r *request) bool { return own(r) && r.outcome == admitted && r.ended.Before(until) })
		t.Logf("%s: the killed process issued %d tokens, %d of them before its last write but one, and %d were counted", client, issued, due, applied)
		if stored[client] != others+applied {
			t.Errorf("%s: counted %d, want %d of the others and %d that the killed one wrote", client, stored[client], others, applied)
		}
		if applied < due {
			t.Errorf("%s: %d of its tokens counted, and %d were issued before it wrote last", client, applied, due)
		}
	}
}

// flushes is what one process has written.
type flushes struct {
	mu           sync.Mutex
	n            map[string]int
	applied      map[string]int64     // by client
	before, last map[string]time.Time // when the last write but one, and the last, had been answered
}

func newFlushes() *flushes {
	return &flushes{n: map[string]int{}, applied: map[string]int64{}, before: map[string]time.Time{}, last: map[string]time.Time{}}
}

// written is how many writes of a client's counter were applied.
func (f *flushes) written(client string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n[client]
}

// state returns how many requests of a client were written, and the time until which
// all had to be: when a write was answered, the next had not begun.
func (f *flushes) state(client string) (applied int64, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied[client], f.before[client]
}

// reply sees what becomes of a write.
func (f *flushes) reply(command, reply bson.D) bson.D {
	if !writesCounters(command) {
		return reply
	}
	failed := map[int]bool{}
	for _, e := range mongotest.Get[bson.A](reply, "writeErrors") {
		failed[int(mongotest.Get[int32](e.(bson.D), "index"))] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, u := range mongotest.Get[bson.A](command, "updates") {
		if failed[i] {
			continue
		}
		update := u.(bson.D)
		client := mongotest.Get[string](mongotest.Get[bson.D](mongotest.Get[bson.D](update, "q"), "_id"), "clientId")
		for _, e := range mongotest.Get[bson.D](mongotest.Get[bson.D](update, "u"), "$inc") {
			if strings.HasPrefix(e.Key, "requestCounters.") {
				n, _ := e.Value.(int64)
				f.applied[client] += n
			}
		}
		f.before[client], f.last[client] = f.last[client], time.Now()
		f.n[client]++
	}
	return reply
}

const fullLimit = 50

// fullLimits has a client with fullLimit requests per day, in so many frames.
func fullLimits(frames string) string {
	return farLimits + "  clients: { full: { client: [ { name: day, requests: 50, window: 24h, frames: " + frames + " } ] } }\n"
}

// TestRestartWithOtherFrames: a client at its limit stays there when one process
// after the other is killed and starts with other frames of the same limit.
func TestRestartWithOtherFrames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fullLimits("1"), "full")
	c.grow(3)
	all := func() int64 { return c.ledger.issued()["full"] }
	for range 10 * fullLimit {
		if c.ask(t.Context(), c.members[0], "full"); all() == fullLimit {
			break
		}
	}
	for _, m := range c.members {
		c.exhaust(m, "full")
	}
	check.Eventually(t, "all is counted", func() bool { return c.stored()["full"] == all() })
	other := filepath.Join(t.TempDir(), "other.yaml")
	check.OK(t, os.WriteFile(other, []byte(fullLimits("24")), 0o600))
	for _, m := range c.members {
		m.kill()
		m.args[2] = other
		c.start(m)
		before := all()
		c.exhaust(m, "full") // the first are decided before the document is read
		if n := all() - before; n > fullLimit/5 {
			t.Errorf("server %d: %d admitted after the restart of a client at its limit", m.number, n)
		}
		for _, one := range c.members {
			for range 5 {
				if c.ask(t.Context(), one, "full") {
					t.Errorf("server %d: admitted at the limit, after the restart of server %d", one.number, m.number)
				}
			}
		}
	}
	c.stop(c.members...)
	if issued, stored := all(), c.stored()["full"]; issued != stored {
		t.Errorf("%d tokens, %d counted", issued, stored)
	}
}

// exhaust asks a server, less and less often, until it denies.
func (c *cluster) exhaust(m *member, client string) {
	c.t.Helper()
	for pause := 10 * time.Millisecond; c.ask(c.t.Context(), m, client); pause *= 2 {
		if pause > startTimeout {
			c.t.Fatalf("server %d denies nothing", m.number)
		}
		wait(c.t, pause)
	}
}
