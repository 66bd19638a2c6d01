package storetest

import (
	"testing"
	"time"

	"oauth-server/internal/syncer"
)

func testInstances(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	a := syncer.Instance{
		ID: "a", Host: "höst", Version: "v1", Started: Epoch, Keys: 1, Dirty: 2, Degraded: true,
		Offset: -time.Millisecond, Interval: time.Second,
	}
	alive := beat(t, b, a, time.Hour)
	if len(alive) != 1 || time.Since(alive[0].Beaten).Abs() > time.Hour {
		t.Fatalf("alive are %+v", alive)
	}
	a.Beaten = alive[0].Beaten
	equal(t, "the only instance", []syncer.Instance{a}, alive)

	alive = beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
	if ids(alive) != "a b " {
		t.Errorf("alive are %+v", alive)
	}
	a.Keys, a.Degraded = 5, false
	alive = beat(t, b, a, time.Hour)
	if ids(alive) != "a b " || alive[0].Keys != 5 || alive[0].Degraded {
		t.Errorf("alive are %+v", alive)
	}
	succeed(t, "leave", b.Leave(ctx, "b"))
	succeed(t, "leave twice", b.Leave(ctx, "b"))
	if alive = beat(t, b, a, time.Hour); ids(alive) != "a " {
		t.Errorf("alive after b left are %+v", alive)
	}
	for ids(beat(t, b, syncer.Instance{ID: "c"}, 5*time.Millisecond)) != "c " {
		continue // until a has been silent for that long
	}
}

func beat(t *testing.T, b Backend, self syncer.Instance, ttl time.Duration) []syncer.Instance {
	t.Helper()
	alive, err := b.Beat(t.Context(), self, ttl)
	succeed(t, "beat", err)
	return alive
}

func ids(list []syncer.Instance) (s string) {
	for _, i := range list {
		s += i.ID + " "
	}
	return s
}
