package storetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// testAllegrosTable replays the published table, step by step, with two
// instances that share one document of the store under test.
func testAllegrosTable(t *testing.T, target Target) {
	t.Helper()
	b := target.fresh(t)
	world := &tableWorld{b: b, a: tableInstance{name: "a"}, other: tableInstance{name: "b"}}
	for _, s := range allegrosTable(t) {
		s.play(t, world)
		got := tableStep{
			Do: s.Do, A: [2]int64{world.a.g, world.a.i}, B: [2]int64{world.other.g, world.other.i},
			DB: total(load(t, b, counterID("allegro"))), Total: world.requests,
		}
		equal(t, s.Do, s, got)
	}
}

type tableStep struct {
	Do    string   `json:"do"`
	A     [2]int64 `json:"A"` // g and i
	B     [2]int64 `json:"B"`
	DB    int64    `json:"db"`
	Total int64    `json:"total"`
}

func allegrosTable(t *testing.T) []tableStep {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	content, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "ratelimit", "testdata", "sync-steps.json"))
	succeed(t, "read the table", err)
	var table struct {
		Steps []tableStep `json:"steps"`
	}
	succeed(t, "parse the table", json.Unmarshal(content, &table))
	if len(table.Steps) < 10 {
		t.Fatalf("the table has %d steps", len(table.Steps))
	}
	return table.Steps
}

type tableWorld struct {
	b        Backend
	a, other tableInstance
	requests int64
}

// tableInstance is an instance as the table has it: g known, i not yet flushed.
type tableInstance struct {
	name                       string
	g, i, version, etag, flush int64
}

func (s tableStep) play(t *testing.T, w *tableWorld) {
	t.Helper()
	switch s.Do {
	case "start":
	case "one request at A":
		w.request(&w.a, 1)
	case "one request at A, three at B":
		w.request(&w.a, 1)
		w.request(&w.other, 3)
	case "A flushes":
		w.a.flushes(t, w.b, syncer.Applied)
	case "B flushes":
		w.other.flushes(t, w.b, syncer.Applied)
	case "A flushes and is refused":
		w.a.flushes(t, w.b, syncer.Conflict)
	case "A refreshes":
		w.a.refreshes(t, w.b)
	case "B refreshes":
		w.other.refreshes(t, w.b)
	default:
		t.Fatalf("nobody knows how to do %q", s.Do)
	}
}

func (w *tableWorld) request(at *tableInstance, n int64) {
	at.i += n
	w.requests += n
}

func (x *tableInstance) flushes(t *testing.T, b Backend, want syncer.Status) {
	t.Helper()
	x.flush++
	w := syncer.Write{
		ID: counterID("allegro"), Version: x.version, Etag: x.etag, NewEtag: 100*x.flush + int64(x.name[0]), Seq: x.flush,
		Delta: []ratelimit.FrameCount{{Name: frame, Count: x.i}}, Expire: Epoch,
	}
	applyTo(t, b, x.name, w, want)
	if want == syncer.Applied {
		x.g, x.i, x.version, x.etag = x.g+x.i, 0, x.version+1, w.NewEtag
	}
}

func (x *tableInstance) refreshes(t *testing.T, b Backend) {
	t.Helper()
	r := load(t, b, counterID("allegro"))
	if r == nil {
		t.Fatal("there is nothing to refresh from")
	}
	x.g, x.version, x.etag = total(r), r.Version, r.Etag
}
