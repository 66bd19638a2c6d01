package syncer_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
	"oauth-server/internal/syncer/memstore"
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

// unstarted returns an instance that only makes the exchanges that a test asks for.
func unstarted(store exchange.Store) *member {
	m, cfg := &member{counters: counting.NewCounters(100), clock: clock.New(nil)}, syncer.DefaultConfig()
	cfg.Clock = m.clock
	m.syncer = syncer.New(m.counters, store, nil, cfg)
	return m
}

// TestAllegrosTable follows the table of two instances that share one counter, from Allegro's
// description of their rate limiter, step by step.
func TestAllegrosTable(t *testing.T) {
	raw, err := os.ReadFile("testdata/sync-steps.json")
	check.OK(t, err)
	var table struct{ Steps []step }
	check.OK(t, json.Unmarshal(raw, &table))
	check.Equal(t, "steps", len(table.Steps) >= 10, true)
	store, policy, key := &memstore.Store{}, policyOf(t, perMinute), keyOf(0)
	both := map[byte]*member{'A': unstarted(store), 'B': unstarted(store)}
	request := func(name byte, n int64) int64 {
		m := both[name]
		if d := m.take(key, policy, n); d.Rejected() != (n > 100) { // more than the limit only adds the key
			t.Fatalf("%d requests: %v", n, d.Outcome)
		}
		return n
	}
	counts := func(name byte) (known [2]int64) {
		m := both[name]
		for _, u := range m.counters.Usage(m.now(), key) {
			known[0] += u.Known
			known[1] += u.Unflushed
		}
		return known
	}
	total := int64(0)
	for i, want := range table.Steps {
		s := both[want.Do[0]]
		switch {
		case want.Do == "start":
			request('A', 101)
			request('B', 101)
			check.OK(t, both['A'].syncer.Refresh(t.Context(), key))
			check.OK(t, both['B'].syncer.Refresh(t.Context(), key))
		case want.Do == "one request at A":
			total += request('A', 1)
		case want.Do == "one request at A, three at B":
			total += request('A', 1) + request('B', 3)
		case strings.HasSuffix(want.Do, " refreshes"):
			check.OK(t, s.syncer.Refresh(t.Context(), key))
		default: // "A flushes", or "A flushes and is refused"
			before := s.syncer.Stats().Conflicts
			check.OK(t, s.syncer.Flush(t.Context(), key))
			check.Equal(t, "refused", s.syncer.Stats().Conflicts > before, strings.HasSuffix(want.Do, "refused"))
		}
		check.Equal(t, "step "+want.Do, step{want.Do, counts('A'), counts('B'), stored(t, store, key), total}, want)
		if t.Failed() {
			t.Fatalf("step %d", i)
		}
	}
}
