// Package synctable runs a published table of two instances that share one counter over any
// [syncer.Store], step by step. The table is from Allegro's description of their rate limiter.
package synctable

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
)

// step is one line of the table: the action, the known and the unflushed count at A and at B (g and
// i in the table), the count in the database, and all requests.
type step struct {
	Do    string   `json:"do"`
	A     [2]int64 `json:"A"`
	B     [2]int64 `json:"B"`
	DB    int64    `json:"db"`
	Total int64    `json:"total"`
}

// Run runs the table over the store, which must have no document of the client "allegro" and the
// user "table".
func Run(t *testing.T, store syncer.Store) {
	t.Helper()
	p := play{store: store, a: newInstance(t, store), b: newInstance(t, store)}
	for i, want := range steps(t) {
		p.do(t, want.Do)
		if got := p.now(t, want.Do); got != want {
			t.Fatalf("step %d\n got %+v\nwant %+v", i, got, want)
		}
	}
}

// steps reads the table.
func steps(t *testing.T) []step {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "ratelimit", "testdata", "sync-steps.json"))
	var table struct {
		Steps []step `json:"steps"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil || len(table.Steps) < 10 {
		t.Fatalf("the table has %d steps: %v", len(table.Steps), err)
	}
	return table.Steps
}

var key = ratelimit.Key{ClientID: "allegro", Username: "table"}

// instance is one process. Its syncer is not started and only makes the exchanges of the table.
type instance struct {
	counters *ratelimit.Counters
	syncer   *syncer.Syncer
	clock    *clock.Clock
	policy   *ratelimit.Effective
}

func newInstance(t *testing.T, store syncer.Store) *instance {
	t.Helper()
	policies, err := ratelimit.Compile(ratelimit.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	c, cfg := ratelimit.NewCounters(100), syncer.DefaultConfig()
	return &instance{counters: c, syncer: syncer.New(c, store, nil, cfg), clock: cfg.Clock, policy: policies.For(key.ClientID)}
}

// request sends n requests. Requests over the limit are denied; they only add the key.
func (in *instance) request(t *testing.T, n int64) {
	t.Helper()
	d := in.counters.Take(in.clock.Now(), key, in.policy, n)
	if d.Rejected() != (n > 100) {
		t.Fatalf("%d requests: %v", n, d.Outcome)
	}
}

// counts returns the known and the unflushed count.
func (in *instance) counts() (gi [2]int64) {
	for _, u := range in.counters.Usage(in.clock.Now(), key) {
		gi[0] += u.Known
		gi[1] += u.Unflushed
	}
	return gi
}

// play is a run of the table.
type play struct {
	store syncer.Store
	a, b  *instance
	total int64 // requests sent so far
}

// do does one step.
func (p *play) do(t *testing.T, what string) {
	t.Helper()
	ctx := t.Context()
	var err error
	switch what {
	case "start":
		p.a.request(t, 101)
		p.b.request(t, 101)
		err = errors.Join(p.a.syncer.Refresh(ctx, key), p.b.syncer.Refresh(ctx, key))
	case "one request at A":
		p.a.request(t, 1)
		p.total++
	case "one request at A, three at B":
		p.a.request(t, 1)
		p.b.request(t, 3)
		p.total += 4
	case "A flushes":
		err = p.a.syncer.Flush(ctx, key)
	case "B flushes":
		err = p.b.syncer.Flush(ctx, key)
	case "A flushes and is refused":
		before := p.a.syncer.Stats().Conflicts
		err = p.a.syncer.Flush(ctx, key)
		if err == nil && p.a.syncer.Stats().Conflicts != before+1 {
			err = errors.New("the write did not conflict")
		}
	case "A refreshes":
		err = p.a.syncer.Refresh(ctx, key)
	case "B refreshes":
		err = p.b.syncer.Refresh(ctx, key)
	default:
		err = errors.New("unknown step")
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// now returns the current counts as a step.
func (p *play) now(t *testing.T, did string) step {
	t.Helper()
	s := step{Do: did, A: p.a.counts(), B: p.b.counts(), Total: p.total}
	id := ratelimit.CounterID{ClientID: key.ClientID, Username: key.Username}
	results, err := p.store.Exchange(t.Context(), []syncer.Item{{ID: id, Read: true}})
	if err != nil {
		t.Fatalf("%s: read the database: %v", did, err)
	}
	if r := results[0].Record; r != nil {
		for _, f := range r.Frames {
			s.DB += f.Count
		}
	}
	return s
}
