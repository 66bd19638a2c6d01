// Package synctable plays a published table of two instances that share one
// counter (Allegro), step by step, over any [syncer.Store].
package synctable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"oauth-server/internal/clock"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// step is one line of the table: what is done, and what is then known (g) and
// unwritten (i) at A and at B, in the database, and in all.
type step struct {
	Do    string   `json:"do"`
	A     [2]int64 `json:"A"`
	B     [2]int64 `json:"B"`
	DB    int64    `json:"db"`
	Total int64    `json:"total"`
}

// Run plays the table over the store, which must not know the client
// "allegro", user "table".
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

// instance is one process, whose syncer does only what it is told to.
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

// request sends n requests; more than the limit are denied, and only make the key known.
func (in *instance) request(t *testing.T, n int64) {
	t.Helper()
	d := in.counters.Take(in.clock.Now(), key, in.policy, n)
	if d.Rejected() != (n > 100) {
		t.Fatalf("%d requests: %v", n, d.Outcome)
	}
}

func (in *instance) counts() (gi [2]int64) {
	for _, u := range in.counters.Usage(in.clock.Now(), key) {
		gi[0] += u.Known
		gi[1] += u.Unflushed
	}
	return gi
}

type play struct {
	store syncer.Store
	a, b  *instance
	total int64
}

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
		if p.a.syncer.Stats().Conflicts != before+1 {
			err = fmt.Errorf("was not refused: %w", err)
		}
	case "A refreshes":
		err = p.a.syncer.Refresh(ctx, key)
	case "B refreshes":
		err = p.b.syncer.Refresh(ctx, key)
	default:
		err = fmt.Errorf("unknown step")
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

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
