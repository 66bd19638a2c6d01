package syncer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer"
)

// TestClonedProcess: two processes run under one ID, as after a virtual machine was copied. One of
// them takes another, and every request is counted once.
func TestClonedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(time.Millisecond)
		first := newMember(t, net, 1, 0, nil)
		policy := policyOf(t, perDay)
		admitted := int64(0)
		request := func(m *member, n int) {
			for i := range n {
				m.take(keyOf(i%3), policy, 1)
				admitted++
			}
		}
		request(first, 30)
		pass(10 * time.Second)
		log := &journal{}
		copied := newMember(t, net, 2, 0, func(c *syncer.Config) { c.Log = log.logger() })
		copied.syncer.BecomeCloneOf(first.syncer)
		if copied.syncer.ID() != first.syncer.ID() {
			t.Fatal("the clone has another ID")
		}
		for range 100 {
			request(first, 3)
			request(copied, 3)
			pass(100 * time.Millisecond)
		}
		if first.syncer.ID() == copied.syncer.ID() {
			t.Error("both still run under one ID")
		}
		if n := first.syncer.Stats().Clones + copied.syncer.Stats().Clones; n < 1 || n > 2 {
			t.Errorf("%d IDs were taken anew", n)
		}
		for _, m := range []*member{first, copied} {
			m.stop(t)
		}
		sum := int64(0)
		for i := range 3 {
			sum += stored(t, net.db, keyOf(i))
		}
		check.Equal(t, "stored", sum, admitted)
	})
}

// TestCopiesDrawDifferently: copies of a process that write in the same millisecond use different
// sequences and etags.
func TestCopiesDrawDifferently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var copies [2]*syncer.Syncer
		for i := range copies {
			copies[i] = syncer.New(counting.NewCounters(10), &wrapped{}, nil, syncer.DefaultConfig())
			copies[i].SetRandomState(99)
		}
		same := 0
		for range 50 {
			if copies[0].DrawSeq() == copies[1].DrawSeq() {
				same++
			}
			if etag := syncer.DrawEtag(); etag == syncer.DrawEtag() {
				same++
			}
			wait(time.Millisecond)
		}
		if same > 2 { // two draws of 20 bits may be equal by chance
			t.Errorf("%d of 100 are the same", same)
		}
	})
}

// TestOddHeartbeats: an instance that runs alone does not mistake itself for a copy, whatever
// happens to its heartbeats.
func TestOddHeartbeats(t *testing.T) {
	var late func()
	for _, tc := range []struct {
		name string
		beat func(n int, store func()) error
	}{
		{"one is stored after a later one", func(n int, store func()) error {
			switch n {
			case 3:
				late = store
				return errNetwork
			case 5:
				defer late()
			}
			store()
			return nil
		}},
		{"one is stored long after later ones", func(n int, store func()) error {
			switch n {
			case 3:
				late = store
				return errNetwork
			case 60:
				defer late()
			}
			store()
			return nil
		}},
		{"the answer to the first of many is lost, and none of the others arrives", func(n int, store func()) error {
			if n == 3 {
				store()
			}
			if n >= 3 && n < 200 {
				return errNetwork
			}
			store()
			return nil
		}},
		{"many do not arrive, and one of them does at last", func(n int, store func()) error {
			switch {
			case n == 150:
				late = store
				return errNetwork
			case n >= 3 && n < 200:
				return errNetwork
			case n == 202:
				defer late()
			}
			store()
			return nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, store := 0, &wrapped{}
				store.beat = func(store func()) error {
					n++
					return tc.beat(n, store)
				}
				m := alone(t, store, func(c *syncer.Config) { c.Beat = time.Second })
				pass(220 * time.Second)
				if n < 205 {
					t.Fatalf("%d heartbeats", n)
				}
				check.Equal(t, "copies of itself", m.syncer.Stats().Clones, 0)
			})
		})
	}
}
