package e2e

import (
	"context"
	"regexp"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// Bounds of a server whose writes fail.
const (
	// degradedWithin is how soon /readyz shows it after the first that failed.
	degradedWithin = 5 * time.Second
	// mostRetries is how often it tries in the seconds that this takes: the wait
	// doubles each time.
	mostRetries = 20
)

// TestWritesFail lets the writes of one process fail, while everything that it reads is
// answered: all of them, and then those of one client.
func TestWritesFail(t *testing.T) {
	t.Parallel()
	clients := []string{"one", "two", "three"}
	c := newCluster(t, farLimits, clients...)
	c.grow(3)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { c.turns(ctx, 5*time.Millisecond, clients...) })
	watch, failing := c.watch(), c.members[1]
	check.Eventually(t, "all clients are counted", func() bool { return len(c.stored()) == len(clients) })

	for i, tc := range []struct {
		name   string
		refuse func(*refusals) mongotest.Alteration
		shared []string // clients whose counts all go on being shared
	}{
		{"all", (*refusals).commands, nil},
		{"one client's", (*refusals).statements, []string{"two", "three"}},
	} {
		r := &refusals{client: "one"}
		failing.proxy.Alter(tc.refuse(r))
		check.Eventually(t, tc.name+": a write is refused", func() bool { first, _ := r.seen(); return !first.IsZero() })
		first, _ := r.seen()
		check.Eventually(t, tc.name+": the server is degraded", func() bool { return failing.status() == "degraded" })
		if took, slow := time.Since(first), watch.slow(first, time.Now()); took > degradedWithin+slow {
			t.Errorf("%s: degraded after %v, want at most %v", tc.name, took, degradedWithin)
		}
		issued := c.ledger.issued()
		for _, client := range tc.shared {
			check.Eventually(t, tc.name+": the counts of client "+client+" are shared", func() bool { return c.stored()[client] >= issued[client] })
		}
		check.Eventually(t, tc.name+": it logs the failure", func() bool { return len(failing.logged("counts not shared")) == i+1 })
		if _, n := r.seen(); n > mostRetries {
			t.Errorf("%s: %d writes were tried, want at most %d", tc.name, n, mostRetries)
		}
		for _, m := range []*member{c.members[0], c.members[2]} {
			// Where the machine was so slow that the database kept a server waiting, it is degraded for a moment, too.
			check.Eventually(t, tc.name+": another server is ready", func() bool { return m.status() == "ready" })
		}
		failing.proxy.Alter(mongotest.Alteration{})
		check.Eventually(t, tc.name+": the server is ready again", func() bool { return failing.status() == "ready" })
		check.Eventually(t, tc.name+": it logs the end", func() bool { return len(failing.logged("counts shared again")) == i+1 })
	}
	stop()
	load.Wait()
	c.stop(c.members...)
	check.Equal(t, "tokens that were counted", c.stored(), c.ledger.issued())
	for _, text := range []string{"counts not shared", "counts shared again"} {
		lines := failing.logged(text)
		if len(lines) != 2 {
			t.Errorf("%q is logged %d times, want twice: %q", text, len(lines), lines)
		}
		for _, line := range lines {
			if !waiting.MatchString(line) {
				t.Errorf("the line does not say how much waits: %s", line)
			}
		}
	}
}

var waiting = regexp.MustCompile(` counters=\d+ requests=\d+ `)

// status is what /readyz says.
func (m *member) status() string {
	m.tb.Helper()
	status, _ := m.get("/readyz").object(m.tb)["status"].(string)
	return status
}

// refusals is a server that refuses to write counters.
type refusals struct {
	client string // whose statements are refused

	mu    sync.Mutex
	first time.Time
	n     int // commands with a write that was refused
}

// seen returns when the first was refused, and how many were.
func (r *refusals) seen() (first time.Time, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first, r.n
}

func (r *refusals) note() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n++; r.n == 1 {
		r.first = time.Now()
	}
}

// writesCounters reports whether the command writes counters.
func writesCounters(command bson.D) bool {
	return command[0] == bson.E{Key: "update", Value: "ratelimits"}
}

// commands refuses whole commands, as a server does that is no longer primary.
func (r *refusals) commands() mongotest.Alteration {
	return mongotest.Alteration{Answer: func(command bson.D) bson.D {
		if !writesCounters(command) {
			return nil
		}
		r.note()
		return mongotest.Refusal(10107, "NotWritablePrimary", "not primary")
	}}
}

// statements refuses the statements of one client, by a code that says nothing.
func (r *refusals) statements() mongotest.Alteration {
	refused := func(update any) bool {
		id := mongotest.Get[bson.D](mongotest.Get[bson.D](update.(bson.D), "q"), "_id")
		return mongotest.Get[string](id, "clientId") == r.client
	}
	return mongotest.Alteration{
		Request: func(command bson.D) bson.D { // such a statement finds nothing to do
			if !writesCounters(command) {
				return command
			}
			updates := bson.A{}
			for _, u := range mongotest.Get[bson.A](command, "updates") {
				if refused(u) {
					u = bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: "none"}}}, {Key: "u", Value: mongotest.Get[bson.D](u.(bson.D), "u")}}
				}
				updates = append(updates, u)
			}
			return mongotest.With(command, "updates", updates)
		},
		Reply: func(command, reply bson.D) bson.D {
			if !writesCounters(command) {
				return reply
			}
			errs := mongotest.Get[bson.A](reply, "writeErrors")
			for i, u := range mongotest.Get[bson.A](command, "updates") {
				if refused(u) {
					r.note()
					errs = append(errs, bson.D{{Key: "index", Value: i}, {Key: "code", Value: 99_999}, {Key: "errmsg", Value: "no"}})
				}
			}
			if len(errs) == 0 {
				return reply
			}
			if mongotest.Get[bson.A](reply, "writeErrors") == nil {
				return append(reply, bson.E{Key: "writeErrors", Value: errs})
			}
			return mongotest.With(reply, "writeErrors", errs)
		},
	}
}
