package sharing_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// instance decides on requests, and shares its counts.
type instance interface {
	take(k ratelimit.Key) bool
	stop()
}

// database is a new database of MongoDB's stand-in, or of a MongoDB.
type database struct{ uri, name string }

func newDatabase(tb testing.TB) *database {
	tb.Helper()
	uri := os.Getenv("MONGODB_TEST_URI")
	if uri == "" {
		tb.Skip("MONGODB_TEST_URI is not set: export MONGODB_TEST_URI=$(.ci/mongo-test-server)")
	}
	d := &database{uri, "bench_" + strings.ToLower(rand.Text())}
	m, err := app.OpenMigrator(tb.Context(), d.config(uri))
	if err != nil {
		tb.Fatal(err)
	}
	_, err = m.Migrate(tb.Context())
	if err := errors.Join(err, m.Close()); err != nil {
		tb.Fatal(err)
	}
	return d
}

func (d *database) config(uri string) config.Store {
	return config.Store{MongoDB: &config.MongoDB{URI: uri, Database: d.name}}
}

// open opens the database through the URI, which is that of a proxy.
func (d *database) open(tb testing.TB, uri string) app.Store {
	tb.Helper()
	store, err := app.OpenStore(tb.Context(), d.config(uri))
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// decider is our limiter by itself.
type decider struct {
	counters *counting.Counters
	policy   *ratelimit.Effective
}

func newDecider(tb testing.TB, limit int64, window time.Duration) *decider {
	tb.Helper()
	l := ratelimit.NewLimit("limit", limit, window)
	policy, err := ratelimit.Enforced(l, l)
	if err != nil {
		tb.Fatal(err)
	}
	return &decider{counting.NewCounters(0), policy}
}

func (d *decider) take(k ratelimit.Key) bool {
	decision, _ := d.counters.Await(context.Background(), time.Now(), k, d.policy, 1)
	return !decision.Rejected()
}

// ours is our limiter with its syncer.
type ours struct {
	*decider
	syncer *syncer.Syncer
	store  app.Store
}

func newOurs(tb testing.TB, store app.Store, limit int64, window time.Duration) *ours {
	tb.Helper()
	o := &ours{decider: newDecider(tb, limit, window), store: store}
	o.syncer = syncer.New(o.counters, store, syncer.NewHeartbeats(store), syncer.DefaultConfig())
	o.syncer.Start(tb.Context())
	return o
}

func (o *ours) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = o.syncer.Stop(ctx)
	_ = o.store.Close()
}

// everySecond shares its counts every second, whatever they are: it writes what it admitted, and reads the documents
// of all keys that were asked for, in one exchange. It decides by the same estimate.
type everySecond struct {
	store     exchange.Store
	close     func() error
	writer    string
	limit     int64
	window    int64 // ms
	end       context.CancelFunc
	flushing  sync.WaitGroup
	lastFlush int64

	mu   sync.Mutex
	keys map[ratelimit.Key]*counts
}

// counts are of one key: known from the store, mine since then.
type counts struct {
	known, mine map[int64]int64 // by frame
	asked       bool
}

func newEverySecond(tb testing.TB, store app.Store, limit int64, window time.Duration, number int) *everySecond {
	tb.Helper()
	e := &everySecond{
		store: store, close: store.Close, writer: "w" + string(rune('a'+number)), limit: limit, window: window.Milliseconds(),
		keys: map[ratelimit.Key]*counts{},
	}
	var ctx context.Context
	ctx, e.end = context.WithCancel(context.Background())
	e.flushing.Go(func() {
		wait := time.Duration(mathrand.Int64N(int64(time.Second)))
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			wait = time.Second
			if err := e.flush(ctx); err != nil && ctx.Err() == nil {
				tb.Error(err)
			}
		}
	})
	return e
}

func (e *everySecond) take(k ratelimit.Key) bool {
	now := time.Now().UnixMilli()
	frame := now - now%e.window
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.keys[k]
	if c == nil {
		c = &counts{known: map[int64]int64{}, mine: map[int64]int64{}}
		e.keys[k] = c
	}
	c.asked = true
	previous := c.known[frame-e.window] + c.mine[frame-e.window]
	used := c.known[frame] + c.mine[frame] + (frame+e.window-now)*previous/e.window
	if used >= e.limit {
		return false
	}
	c.mine[frame]++
	return true
}

// flush is one exchange; with many keys, several.
func (e *everySecond) flush(ctx context.Context) error {
	items, sent := e.items()
	for batch := range slices.Chunk(items, exchange.MaxBatch) {
		results, err := e.store.Exchange(ctx, batch)
		if err != nil {
			return err
		}
		e.finish(batch, results, sent)
	}
	return nil
}

func (e *everySecond) items() (items []exchange.Item, sent map[ratelimit.Key]map[int64]int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastFlush++
	sent = map[ratelimit.Key]map[int64]int64{}
	for k, c := range e.keys {
		if !c.asked {
			continue
		}
		c.asked = false
		item := exchange.Item{ID: ratelimit.CounterID{ClientID: k.ClientID, Username: k.Username}, Read: true}
		if len(c.mine) > 0 {
			item.Write = e.write(c.mine)
			sent[k], c.mine = c.mine, map[int64]int64{}
			for frame, n := range sent[k] {
				c.known[frame] += n // until the document is read
			}
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b exchange.Item) int { return exchange.CompareIDs(a.ID, b.ID) })
	return items, sent
}

func (e *everySecond) write(mine map[int64]int64) *exchange.Write {
	w := &exchange.Write{
		NewEtag: mathrand.Int64() | 1, Writer: e.writer, Seq: e.lastFlush, Frame: e.window,
		Expire: time.Now().Add(4 * time.Duration(e.window) * time.Millisecond),
	}
	for frame, n := range mine {
		w.Delta = append(w.Delta, ratelimit.FrameCount{Name: frame / 1000, Count: n})
	}
	return w
}

// finish takes over the documents. One that was read before it was written lacks what was sent.
func (e *everySecond) finish(items []exchange.Item, results []exchange.Result, sent map[ratelimit.Key]map[int64]int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, r := range results {
		if r.Record == nil {
			continue
		}
		k := ratelimit.Key{ClientID: items[i].ID.ClientID, Username: items[i].ID.Username}
		c := e.keys[k]
		clear(c.known)
		for _, f := range r.Record.Frames {
			c.known[1000*f.Name] = f.Count
		}
		if items[i].Write != nil && r.Record.Writers[e.writer] < items[i].Write.Seq {
			for frame, n := range sent[k] {
				c.known[frame] += n
			}
		}
	}
}

func (e *everySecond) stop() {
	e.end()
	e.flushing.Wait()
	_ = e.close()
}
