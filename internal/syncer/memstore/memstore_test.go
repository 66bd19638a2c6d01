package memstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/storetest"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

func TestConformance(t *testing.T) {
	storetest.RunCounters(t, storetest.CounterTarget{
		Fresh: func(*testing.T) syncer.Store { return &memstore.Store{} },
		Put:   func(_ *testing.T, s syncer.Store, r syncer.Record) { s.(*memstore.Store).Put(r, storetest.Epoch) },
		Sweep: func(_ context.Context, s syncer.Store, now time.Time) error {
			s.(*memstore.Store).Expire(now)
			return nil
		},
	})
}

// TestClock: the store uses its own clock, also when that jumps.
func TestClock(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &memstore.Store{Clock: func() time.Time { return now }}
	beat := func(id string) (names string) {
		alive, _, err := s.Beat(t.Context(), syncer.Instance{ID: id}, time.Minute)
		check.OK(t, err)
		for _, i := range alive {
			names += i.ID + " "
		}
		return names
	}
	for _, step := range []struct {
		jump  time.Duration
		id    string
		alive string
	}{
		{0, "a", "a "}, {59 * time.Second, "b", "a b "}, {time.Second, "b", "b "}, {-time.Hour, "c", "c "}, {2 * time.Hour, "c", "c "},
	} {
		now = now.Add(step.jump)
		if got, err := s.Now(t.Context()); err != nil || !got.Equal(now) {
			t.Errorf("the clock says %s, %v", got, err)
		}
		if got := beat(step.id); got != step.alive {
			t.Errorf("after a jump of %s %s are alive, want %s", step.jump, got, step.alive)
		}
	}
}

func TestDocuments(t *testing.T) {
	var s memstore.Store
	docs := []syncer.Record{
		{
			ID: ratelimit.CounterID{ClientID: "a"}, Version: 3, Etag: 4, Frame: 60_000, Pruned: 5, Writers: map[string]int64{"w": 6},
			Frames: []ratelimit.FrameCount{{Name: 1, Count: -2}, {Name: 3, Count: 4}},
		},
		{ID: ratelimit.CounterID{ClientID: "a", Limit: "l"}, Version: 1, Writers: map[string]int64{}},
		{ID: ratelimit.CounterID{ClientID: "a", Username: "u"}, Version: 1, Writers: map[string]int64{}},
		{ID: ratelimit.CounterID{ClientID: "b"}, Version: 1, Writers: map[string]int64{}},
	}
	for i := len(docs) - 1; i >= 0; i-- {
		s.Put(docs[i], time.Now())
	}
	got := s.Documents()
	if diff := cmp.Diff(docs, got); diff != "" || s.Len() != len(docs) {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	got[0].Writers["w"], got[0].Frames[0].Count = 0, 0
	check.Equal(t, "what was returned is the store's own", s.Documents(), docs)
}
