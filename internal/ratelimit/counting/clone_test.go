package counting_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer/memstore"
)

// process is counters with a syncer that makes one exchange at a time.
type process struct {
	counters *counting.Counters
	sync     *counting.Sync
	writer   string
	old      string // its name before the present one
	since    int64  // last sequence under the old name
	seq      int64
	clones   int
	twin     *process // makes the same exchanges, so that it has the same state; nil: none
}

var cloneOptions = counting.SyncOptions{Interval: time.Second, MaxBackoff: time.Second}

func start() *process {
	c := counting.NewCounters(10)
	return &process{counters: c, sync: c.Sync(cloneOptions), writer: "one"}
}

// exchange exchanges a key. lose says which part is lost: nothing, the reply, or the request.
func (p *process) exchange(t *testing.T, store *memstore.Store, now time.Time, k ratelimit.Key, r *rand.Rand, lose int) {
	t.Helper()
	for _, plan := range p.sync.Of(k) {
		p.seq = max(p.seq+1, now.UnixMilli()<<20|r.Int64N(1<<20))
		task, ok := p.sync.Begin(now, plan.Ticket, p.seq)
		var same counting.Task
		if p.twin != nil {
			p.twin.seq = p.seq
			same, _ = p.twin.sync.Begin(now, p.twin.sync.Of(k)[0].Ticket, p.seq)
		}
		if !ok {
			continue
		}
		name := func(seq int64) string {
			if seq != 0 && seq <= p.since {
				return p.old
			}
			return p.writer
		}
		item := exchange.Item{ID: task.ID, Read: task.Read}
		if task.Seq != 0 {
			item.Write = &exchange.Write{
				Versioned: task.Versioned, Version: task.Version, Etag: task.Etag, NewEtag: 1 + r.Int64(),
				Writer: name(task.Seq), Seq: task.Seq, Frame: task.Frame, Delta: task.Delta, Rewrite: task.Rewrite,
				Remove: task.Remove, Expire: task.Expire,
			}
		}
		res := counting.Result{}
		if lose < 2 {
			out, err := store.Exchange(context.Background(), []exchange.Item{item})
			check.OK(t, err)
			if lose == 0 {
				res.Status, res.Read = out[0].Status, out[0].Read
				if rec := out[0].Record; rec != nil {
					res.Document = &ratelimit.Document{
						Version: rec.Version, Etag: rec.Etag, Frame: rec.Frame, Frames: rec.Frames,
						Mine: rec.Writers[name(task.Pending)], Contended: true, Writers: 2,
					}
				}
				if item.Write != nil {
					res.NewEtag = item.Write.NewEtag
				}
			}
		}
		if p.twin != nil {
			p.twin.sync.Finish(now, &same, res)
		}
		if done := p.sync.Finish(now, &task, res); done.Clone && name(task.Pending) == p.writer {
			p.clones++
			p.old, p.since = p.writer, p.seq
			p.writer = fmt.Sprintf("%s%d", p.writer, r.IntN(1000))
		}
	}
}

// TestCopiedProcess copies a process at a random time, possibly with a write of unknown outcome. Both processes use one ID until a document reveals it. No request is counted twice.
// Requests can be lost only from writes of unknown outcome.
func TestCopiedProcess(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-day", 1_000_000, 24*time.Hour)}
	policies, err := ratelimit.Compile(settings)
	check.OK(t, err)
	noticed, exact := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		faults := seed%2 == 1 // faults after the copy; before it there always are
		store, k := &memstore.Store{}, ratelimit.Key{ClientID: "c", Username: "u"}
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		one, two := start(), start()
		one.twin = two
		all := []*process{one}
		admitted, doubt := int64(0), int64(0)
		step := func(faulty bool) {
			now = now.Add(time.Duration(r.IntN(200)) * time.Millisecond)
			p := all[r.IntN(len(all))]
			if r.IntN(2) == 0 {
				n := 1 + r.Int64N(5)
				p.counters.Take(now, k, policies.For("c"), n)
				if p.twin != nil {
					p.twin.counters.Take(now, k, policies.For("c"), n)
				}
				admitted += n
				return
			}
			lose := 0
			if faulty {
				lose = r.IntN(3)
			}
			if lose > 0 && len(all) > 1 {
				for _, u := range p.counters.Usage(now, k) {
					doubt += u.Unflushed
				}
			}
			p.exchange(t, store, now, k, r, lose)
		}
		for range 1 + r.IntN(20) {
			step(true)
		}
		one.twin = nil
		before := admitted
		for _, u := range one.counters.Usage(now, k) {
			before -= u.Unflushed // the copy has the same counts, and either process writes those that are not in doubt
		}
		pending := admitted - before
		all = append(all, two)
		for range r.IntN(60) {
			step(faults)
		}
		for range 12 {
			for _, p := range all {
				now = now.Add(time.Second)
				p.exchange(t, store, now, k, r, 0)
			}
		}
		sum := int64(0)
		for _, d := range store.Documents() {
			for _, f := range d.Frames {
				sum += f.Count
			}
		}
		// Requests that were admitted before the copy and were in no write yet are in both
		// processes. Both write them, because they were admitted in both.
		if sum < admitted-doubt || sum > admitted+pending {
			t.Fatalf("seed %d: %d admitted, %d of them in both, %d in doubt, %d stored", seed, admitted, pending, doubt, sum)
		}
		if all[0].clones+all[1].clones > 0 {
			noticed++
		}
		if sum == admitted {
			exact++
		}
	}
	t.Logf("noticed in %d of 2000 runs, exact in %d", noticed, exact)
	if noticed < 200 {
		t.Errorf("noticed in only %d of 2000 runs", noticed)
	}
}
