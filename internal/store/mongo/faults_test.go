package mongo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestUnknownOutcome: a request or its reply is lost, or the request arrives after its sender gave
// up. The outcome is unknown, and the same write, sent again, is counted once.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	const before, after = 1, 2
	for _, test := range []struct {
		name    string
		fault   mongotest.Fault
		arrives int             // when a delayed request arrives: before or after the second attempt
		second  exchange.Status // outcome of the second attempt
	}{
		{"request lost", mongotest.LoseRequest, 0, exchange.Applied},
		{"reply lost", mongotest.LoseReply, 0, exchange.Conflict},
		{"late, before", mongotest.Delay, before, exchange.Conflict},
		{"late, after", mongotest.Delay, after, exchange.Applied},
	} {
		for _, versioned := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, versioned %t", test.name, versioned), func(t *testing.T) {
				t.Parallel() // each waits for a new connection most of the time
				s, direct, proxy := throughProxy(t)
				mustApply(t, direct, aWrite("other", 1, 1), exchange.Applied)
				w := onto(document(t, direct), aWrite("me", 7, 2), versioned)
				once(proxy, "update", test.fault)
				mustNotGuess(t, s, w)
				if test.arrives == before {
					deliver(t, proxy, 1)
				}
				mustApply(t, s, again(w), test.second)
				if test.arrives == after {
					deliver(t, proxy, 1)
				}
				mustApply(t, s, again(w), exchange.Conflict)
				if r := document(t, s); counted(r) != 3 || r.Writers["me"] != 7 {
					t.Errorf("the document is %+v", r)
				}
			})
		}
	}
}

// once breaks the next request of that command, and none after it.
func once(p *mongotest.Proxy, command string, fault mongotest.Fault) {
	armed := true
	p.Decide(func(c string) mongotest.Fault { // called with a lock held
		if c != command || !armed {
			return mongotest.Pass
		}
		armed = false
		return fault
	})
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
	mustApply(t, direct, aWrite("me", 1, 1), exchange.Applied)
	w := onto(document(t, direct), aWrite("me", 7, 2), true)
	once(proxy, "update", mongotest.Delay)
	mustNotGuess(t, s, w)
	_, err := direct.counters.DeleteMany(t.Context(), byID(counterID(hotID)))
	check.OK(t, err)
	mustApply(t, direct, aWrite("other", 1, 4), exchange.Applied)
	deliver(t, proxy, 1)
	mustApply(t, s, again(w), exchange.Applied)
	check.Equal(t, "counted", counted(document(t, s)), 6)
}

// TestHalfLost: an exchange writes and reads, and only one half gets a reply. That half counts.
func TestHalfLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		command string
		status  exchange.Status
		read    bool
	}{
		{"the write", "update", exchange.Unknown, true},
		{"the read", "find", exchange.Applied, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, direct, proxy := throughProxy(t)
			mustApply(t, direct, aWrite("other", 1, 1), exchange.Applied)
			var sent atomic.Bool
			proxy.Decide(func(command string) mongotest.Fault { // each time: the driver repeats a read on its own
				sent.Store(sent.Load() || command == "update")
				if command == test.command {
					return mongotest.LoseReply
				}
				return mongotest.Pass
			})
			var results []exchange.Result
			var err error
			// A lost reply costs the driver its connections. The driver may then give up the other
			// command before it has a connection for it.
			for try := 0; !sent.Load() && try < 50; try++ {
				results, err = s.Exchange(t.Context(), []exchange.Item{
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
	both, write := s.Exchange(ctx, []exchange.Item{{ID: hotID, Write: aWrite("me", 1, 1), Read: true}})
	_, read := s.Exchange(ctx, []exchange.Item{{ID: hotID, Read: true}})
	_, now := s.Now(ctx)
	things := store.Table{Name: "things"}
	_, put := s.Put(ctx, things, store.Record{Key: "a", Value: []byte("{}")}, store.Seen{})
	list := s.List(ctx, things, store.Query{}, func(store.Record) error { return nil })
	for name, err := range map[string]error{
		"exchange": write, "read": read, "now": now, "put": put, "list": list,
	} {
		if err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range both {
		if r.Status != exchange.Unknown || r.Read {
			t.Errorf("the store guessed: %+v", r)
		}
	}
	proxy.Restore()
	mustApply(t, s, aWrite("me", 1, 1), exchange.Applied)
	check.Equal(t, "counted", counted(document(t, s)), 1)
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
