package mongo

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/syncer"
)

// wireLog checks all commands that pass through a proxy.
type wireLog struct {
	mu       sync.Mutex
	forms    map[string]int
	problems map[string]int
}

func (l *wireLog) observe(command bson.Raw) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := checkCommand(command)
	if c == nil {
		return
	}
	for _, form := range c.forms {
		l.forms[form]++
	}
	for _, problem := range c.problems {
		l.problems[problem]++
	}
}

func observed(p *mongotest.Proxy) *wireLog {
	l := &wireLog{forms: map[string]int{}, problems: map[string]int{}}
	p.Observe(l.observe)
	return l
}

// saw fails on any problem, and if one of the forms never occurred.
func (l *wireLog) saw(t *testing.T, forms ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, problem := range slices.SortedFunc(maps.Keys(l.problems), func(a, b string) int { return cmp.Compare(l.problems[b], l.problems[a]) }) {
		if i < 10 {
			t.Errorf("%d times: %.300s", l.problems[problem], problem)
		}
	}
	for _, form := range forms {
		if l.forms[form] == 0 {
			t.Errorf("no %s was seen, only %v", form, l.forms)
		}
	}
}

// TestCommandsOnTheWire: several instances make all kinds of writes through faults. Every command
// on the counters must be correct on a server that follows it to the letter.
func TestCommandsOnTheWire(t *testing.T) {
	t.Parallel()
	const instances, rounds, keys = 4, 12, 6
	_, direct, proxy := throughProxy(t)
	log := observed(proxy)
	proxy.Decide(lossy(7))
	var wg sync.WaitGroup
	for i := range instances {
		s := openAt(t, proxy.URI, direct.db.Name())
		wg.Go(func() {
			w := wireInstance{store: s, me: fmt.Sprintf("w%d", i), seq: int64(i), random: rand.New(rand.NewPCG(uint64(i), 3))}
			for range rounds {
				w.exchange(t, keys)
				_, _ = proxy.Deliver()
			}
			_, _ = s.CountersOf(t.Context(), "shop", nil, 10)
			_ = s.EraseCounters(t.Context(), "shop", new("user 3"))
			_ = s.EraseCounters(t.Context(), "other", nil)
		})
	}
	wg.Wait()
	log.saw(t, "update", "find", "delete", "range", "versioned", "versioned, no document", "unversioned", "removes requestCounters",
		"removes writers", "rewrite", "prunes", "gives back", "counts nothing", "bulk of many", "find of many")
}

// wireInstance writes in every way that the contract allows for the document it read.
type wireInstance struct {
	store  *Store
	me     string
	seq    int64
	random *rand.Rand
	known  []*syncer.Record
}

func (x *wireInstance) exchange(t *testing.T, keys int) {
	t.Helper()
	items := make([]syncer.Item, keys)
	if x.known == nil {
		x.known = make([]*syncer.Record, keys)
	}
	for k := range items {
		items[k] = syncer.Item{ID: keyID(k), Read: x.random.IntN(4) > 0}
		if x.random.IntN(5) > 0 {
			x.seq += 10
			items[k].Write = x.write(x.known[k])
		}
	}
	results, err := x.store.Exchange(t.Context(), items)
	for k, r := range results {
		if r.Status == syncer.Rejected && items[k].Write != nil {
			t.Errorf("write %+v is rejected: %v", items[k].Write, r.Err)
		}
		if r.Read {
			x.known[k] = r.Record
		}
	}
	if err != nil && t.Context().Err() != nil {
		t.Error(err)
	}
}

func (x *wireInstance) write(base *syncer.Record) *syncer.Write {
	w := aWrite(x.me, x.seq, 1)
	w.Delta[0].Name += 60 * x.random.Int64N(3)
	onto(base, w, x.random.IntN(2) == 0)
	if base == nil {
		if x.random.IntN(3) == 0 {
			w.Delta = nil
		}
		return w
	}
	w.Seq = max(w.Seq, base.Pruned+1)
	x.seq = w.Seq
	switch w.Rewrite = w.Versioned && x.random.IntN(3) == 0; {
	case w.Rewrite:
	case x.random.IntN(3) == 0 && len(base.Frames) > 1:
		w.Remove.Frames = []ratelimit.FrameCount{base.Frames[0]}
		w.Delta[0].Name = base.Frames[1].Name
	case x.random.IntN(3) == 0 && len(base.Frames) > 0:
		w.Delta = []ratelimit.FrameCount{{Name: base.Frames[0].Name, Count: -1}}
	}
	for _, name := range slices.Sorted(maps.Keys(base.Writers)) {
		if name != x.me && x.random.IntN(4) == 0 {
			w.Remove.Writers = append(w.Remove.Writers, syncer.WriterSeq{Writer: name, Seq: base.Writers[name]})
			w.Pruned = max(w.Pruned, base.Writers[name])
		}
	}
	return w
}

// TestLargestExchangeOnTheWire: the largest exchange is one command of each kind. An exchange that
// is too large sends no command.
func TestLargestExchangeOnTheWire(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	log := observed(proxy)
	items := make([]syncer.Item, syncer.MaxBatch+1)
	for i := range items {
		items[i] = syncer.Item{ID: ratelimit.CounterID{ClientID: "shop", Username: fmt.Sprintf("%05d", i)}, Write: aWrite("me", 1, 1), Read: true}
	}
	if _, err := s.Exchange(t.Context(), items); err == nil || log.forms["update"]+log.forms["find"] > 0 {
		t.Errorf("too large an exchange: %v, and %v was sent", err, log.forms)
	}
	results, err := s.Exchange(t.Context(), items[:syncer.MaxBatch])
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Status != syncer.Applied || !r.Read {
			t.Fatalf("item %d: %+v", i, r)
		}
	}
	log.saw(t, "bulk of 1000")
	if log.forms["update"] != 1 || log.forms["find"] != 1 {
		t.Errorf("sent were %v", log.forms)
	}
}

// TestOnlyWhatIsNeededOnTheWire: an exchange without writes sends no update, one without reads
// sends no find, and an empty one sends nothing.
func TestOnlyWhatIsNeededOnTheWire(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	broken := aWrite("me", 1, 1)
	broken.Writer = "a.b"
	strange := ratelimit.CounterID{ClientID: "shop", Username: "\xff"}
	for name, test := range map[string]struct {
		item          syncer.Item
		updates, find int
	}{
		"nothing":              {syncer.Item{ID: hotID}, 0, 0},
		"a read":               {syncer.Item{ID: hotID, Read: true}, 0, 1},
		"a write":              {syncer.Item{ID: hotID, Write: aWrite("me", 1, 1)}, 1, 0},
		"both":                 {syncer.Item{ID: hotID, Write: aWrite("me", 2, 1), Read: true}, 1, 1},
		"a refused write":      {syncer.Item{ID: hotID, Write: broken}, 0, 0},
		"a name that is none":  {syncer.Item{ID: strange, Write: aWrite("me", 1, 1), Read: true}, 0, 0},
		"refused, but read":    {syncer.Item{ID: hotID, Write: broken, Read: true}, 0, 1},
		"nothing of that name": {syncer.Item{ID: strange, Read: true}, 0, 0},
	} {
		log := observed(proxy)
		if _, err := s.Exchange(t.Context(), []syncer.Item{test.item}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if log.saw(t); log.forms["update"] != test.updates || log.forms["find"] != test.find {
			t.Errorf("%s: sent were %v", name, log.forms)
		}
	}
}

// TestPrimaryOnTheWire: whatever the URI says, reads go to the primary and both concerns are
// majority. The driver sends a read preference only to a server that can choose, such as the router
// of a sharded cluster.
func TestPrimaryOnTheWire(t *testing.T) {
	router := slices.Concat(bson.D{{Key: "msg", Value: "isdbgrid"}}, greeting)
	proxy := mongotest.NewProxy(t, "mongodb://"+fakeServerThat(t, router, bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}}))
	log := observed(proxy)
	client, err := mongo.Connect(clientOptions(proxy.URI + "/?readPreference=nearest&readConcernLevel=local&w=1"))
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(client, "x")
	defer func() { _ = s.Close() }()
	results, err := s.Exchange(t.Context(), []syncer.Item{{ID: hotID, Write: aWrite("me", 1, 1), Read: true}})
	if err == nil || results[0].Status != syncer.Applied { // the server cannot find
		t.Errorf("got %+v, %v", results, err)
	}
	log.saw(t, "update", "find")
}
