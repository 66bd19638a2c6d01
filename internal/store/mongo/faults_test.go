package mongo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/syncer"
)

// TestLostOnTheWay: if the request or the reply is lost, the outcome is unknown. Sent again, the
// same write is counted once.
func TestLostOnTheWay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		fault     mongotest.Fault
		versioned bool
		want      syncer.Status // outcome of the second attempt
	}{
		{"request", mongotest.LoseRequest, true, syncer.Applied},
		{"reply", mongotest.LoseReply, true, syncer.Conflict},
		{"request of an unversioned write", mongotest.LoseRequest, false, syncer.Applied},
		{"reply to an unversioned write", mongotest.LoseReply, false, syncer.Conflict},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _, w := interrupted(t, test.fault, test.versioned)
			mustApply(t, s, again(w), test.want)
			if r := document(t, s); counted(r) != 3 || r.Writers["me"] != 7 {
				t.Errorf("the document is %+v", r)
			}
		})
	}
}

// TestAppliedLate: an abandoned attempt reaches the server after all, before or after the second
// attempt.
func TestAppliedLate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		versioned bool
		before    bool // the late attempt arrives before the second one
	}{
		{"versioned, after", true, false},
		{"versioned, before", true, true},
		{"unversioned, after", false, false},
		{"unversioned, before", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, proxy, w := interrupted(t, mongotest.Delay, test.versioned)
			second := syncer.Applied
			if test.before {
				deliver(t, proxy, 1)
				second = syncer.Conflict
			}
			mustApply(t, s, again(w), second)
			if !test.before {
				deliver(t, proxy, 1)
			}
			mustApply(t, s, again(w), syncer.Conflict)
			if r := document(t, s); counted(r) != 3 {
				t.Errorf("the document is %+v", r)
			}
		})
	}
}

func deliver(t *testing.T, p *mongotest.Proxy, want int) {
	t.Helper()
	if n, err := p.Deliver(); err != nil || n != want {
		t.Fatalf("delivered %d, %v", n, err)
	}
}

// TestRecreated: the document expires while a write is delayed, another instance creates a new one,
// and then the old write arrives.
func TestRecreated(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	mustApply(t, direct, aWrite("me", 1, 1), syncer.Applied)
	w := onto(document(t, direct), aWrite("me", 7, 2), true)
	proxy.Once("update", mongotest.Delay)
	mustNotGuess(t, s, w)
	check.OK(t, sweep(t.Context(), direct, time.Now().Add(2*time.Hour)))
	mustApply(t, direct, aWrite("other", 1, 4), syncer.Applied)
	deliver(t, proxy, 1)
	mustApply(t, s, again(w), syncer.Applied)
	if r := document(t, s); counted(r) != 6 {
		t.Errorf("the document is %+v", r)
	}
}

// TestHalfLost: an exchange writes and reads, and only one half gets a reply. That half counts.
func TestHalfLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		command string
		status  syncer.Status
		read    bool
	}{
		{"the write", "update", syncer.Unknown, true},
		{"the read", "find", syncer.Applied, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, direct, proxy := throughProxy(t)
			mustApply(t, direct, aWrite("other", 1, 1), syncer.Applied)
			var sent atomic.Bool
			proxy.Decide(func(command string) mongotest.Fault { // each time: the driver repeats a read on its own
				sent.Store(sent.Load() || command == "update")
				if command == test.command {
					return mongotest.LoseReply
				}
				return mongotest.Pass
			})
			var results []syncer.Result
			var err error
			// A lost reply costs the driver its connections. The driver may then give up the other
			// command before it has a connection for it.
			for try := 0; !sent.Load() && try < 50; try++ {
				results, err = s.Exchange(t.Context(), []syncer.Item{
					{ID: hotID, Write: aWrite("me", 7, 2), Read: true}, {ID: keyID(1), Write: aWrite("me", 8, 1)}, {ID: keyID(2), Read: true},
				})
			}
			if err == nil || len(results) != 3 {
				t.Fatalf("got %+v, %v", results, err)
			}
			for i, want := range []struct{ write, read bool }{{true, true}, {true, false}, {false, true}} {
				r := results[i]
				if want.write && r.Status != test.status || r.Read != (want.read && test.read) || !r.Read && r.Record != nil {
					t.Errorf("item %d: %+v", i, r)
				}
			}
			if r := results[0].Record; test.read && (r == nil || r.Writers["other"] != 1) {
				t.Errorf("read %+v", r)
			}
			proxy.Decide(nil)
			if r := document(t, s); counted(r) != 3 { // only replies were lost
				t.Errorf("the document is %+v", r)
			}
		})
	}
}

// TestServerAway: while the server is unavailable every call fails within its timeout, and
// afterwards calls succeed again.
func TestServerAway(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	proxy.Break()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	both, exchange := s.Exchange(ctx, []syncer.Item{{ID: hotID, Write: aWrite("me", 1, 1), Read: true}})
	_, read := s.Exchange(ctx, []syncer.Item{{ID: hotID, Read: true}})
	_, now := s.Now(ctx)
	things := store.Table{Name: "things"}
	_, put := s.Put(ctx, things, store.Record{Key: "a", Value: []byte("{}")}, store.Seen{})
	list := s.List(ctx, things, store.Query{}, func(store.Record) error { return nil })
	for name, err := range map[string]error{
		"exchange": exchange, "read": read, "now": now, "put": put, "list": list, "ping": s.Ping(ctx),
	} {
		if err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range both {
		if r.Status != syncer.Unknown || r.Read {
			t.Errorf("the store guessed: %+v", r)
		}
	}
	proxy.Restore()
	mustApply(t, s, aWrite("me", 1, 1), syncer.Applied)
	if r := document(t, s); counted(r) != 1 {
		t.Errorf("the document is %+v", r)
	}
}

// lossy breaks 8 % of the requests in each of three ways.
func lossy(seed uint64) func(command string) mongotest.Fault {
	r := rand.New(rand.NewPCG(seed, 2))
	return func(command string) mongotest.Fault {
		if command != "update" && command != "insert" && command != "find" {
			return mongotest.Pass
		}
		return [25]mongotest.Fault{
			mongotest.LoseRequest, mongotest.LoseRequest, mongotest.LoseReply, mongotest.LoseReply,
			mongotest.Delay, mongotest.Delay,
		}[r.IntN(25)]
	}
}

// TestExactThroughFaults: 12 instances count in 4 hot documents through a proxy that loses requests
// and replies and delivers some much later. Every request is counted exactly once.
func TestExactThroughFaults(t *testing.T) {
	t.Parallel()
	const instances, keys, rounds, seed = 12, 4, 3, 1
	_, direct, proxy := throughProxy(t)
	stores := make([]*Store, instances) // one process each, with its own connections
	for i := range stores {
		stores[i] = openAt(t, proxy.URI, direct.db.Name())
	}
	proxy.Decide(lossy(seed))
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			me := fmt.Sprintf("instance%d", i)
			for round := range int64(rounds) {
				for k := range keys {
					countThroughFaults(t, s, proxy, me, round+1, k)
				}
			}
		})
	}
	wg.Wait()
	if _, err := proxy.Deliver(); err != nil {
		t.Fatal(err)
	}
	for k := range keys {
		r := readOne(t, direct, keyID(k))
		if r == nil || counted(r) != instances*rounds || r.Version != instances*rounds {
			t.Errorf("want %d, have %+v", instances*rounds, r)
		}
	}
}

// countThroughFaults counts one request. It first writes on the document as read. After an unknown
// outcome or three conflicts it writes unversioned, until the document shows that the write was
// applied.
func countThroughFaults(t *testing.T, s *Store, proxy *mongotest.Proxy, me string, seq int64, k int) {
	t.Helper()
	w, base := aWrite(me, seq, 1), readThroughFaults(t, s, keyID(k))
	for tries := 0; ; tries++ {
		onto(base, w, tries < 3)
		w.NewEtag = 1 + rand.Int64N(1<<62)
		results, err := s.Exchange(t.Context(), []syncer.Item{{ID: keyID(k), Write: w, Read: true}})
		if t.Context().Err() != nil {
			return
		}
		r := results[0]
		if r.Status == syncer.Applied {
			return
		}
		if r.Status == syncer.Unknown {
			tries = 3
		}
		if err == nil && !r.Read {
			t.Errorf("without an error the document was not read: %+v", r)
		}
		if tries%5 == 4 {
			_, _ = proxy.Deliver() // abandoned writes arrive between the others
		}
		if base = r.Record; !r.Read {
			base = readThroughFaults(t, s, keyID(k))
		}
		if base != nil && base.Writers[me] >= seq {
			return
		}
	}
}

func readThroughFaults(t *testing.T, s *Store, id ratelimit.CounterID) *syncer.Record {
	t.Helper()
	for {
		results, err := s.Exchange(t.Context(), []syncer.Item{{ID: id, Read: true}})
		if err == nil || t.Context().Err() != nil {
			return results[0].Record
		}
	}
}
