package counting

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestOnOutage: what each OnOutage admits while counts cannot be shared, in one of ten instances,
// for keys with and without a count.
func TestOnOutage(t *testing.T) {
	for _, tc := range []struct {
		on      ratelimit.OnOutage
		known   int64
		admits  int64
		outage  bool
		retries time.Duration // after the last admitted request
	}{
		{ratelimit.Share, 0, 10, true, 60*time.Second + time.Millisecond},
		{ratelimit.Share, 55, 5, true, 0},
		{ratelimit.Share, 99, 1, true, 0},
		{ratelimit.Share, 100, 0, true, 0},
		{ratelimit.Memory, 0, 100, false, 60*time.Second + time.Millisecond},
		{ratelimit.Memory, 55, 45, false, 0},
		{ratelimit.Deny, 0, 0, true, ratelimit.OutageRetry},
		{ratelimit.Deny, 99, 0, true, ratelimit.OutageRetry},
	} {
		t.Run(string(tc.on), func(t *testing.T) {
			l := perMinute(100)
			l.OnOutage = tc.on
			c, k, eff := single(l)
			y := c.Sync(SyncOptions{Interval: time.Second, MaxBackoff: time.Second})
			y.SetInstances(10)
			hold(c, k, eff.User, at(minute))
			task, _ := y.Begin(at(minute), y.Of(k)[0].Ticket, 1)
			y.Finish(at(minute), &task, Result{Read: true, Document: &ratelimit.Document{Version: 1, Frame: 60_000, Frames: frame(60_000, tc.known)}})
			y.Stalled()
			now := at(minute + 500) // a few spacings later
			own, _, _ := c.Room(now, k, eff)
			mustEqual(t, "Room", own, tc.admits)
			check.Equal(t, "admits", admittedNow(c, now, k, eff), tc.admits)
			d := c.Take(now, k, eff, 1)
			if d.Outage != tc.outage || tc.retries > 0 && d.RetryAfter != tc.retries-500*time.Millisecond && d.RetryAfter != ratelimit.OutageRetry {
				t.Errorf("denied with %+v", d)
			}
			setStalled(y, now, false)
			check.Equal(t, "admitted after the outage", admittedNow(c, now, k, eff), 100-tc.known-tc.admits)
		})
	}
}

func setStalled(y *Sync, now time.Time, on bool) {
	if on {
		y.Stalled()
		return
	}
	y.Recovering(now)
	y.Recovered()
}

// TestRecovering: after an outage the OnOutage of a limit decides until the first exchange of the
// counter. It does not apply to a new key.
func TestRecovering(t *testing.T) {
	p := play(t, perMinute(100))
	p.y.SetInstances(10)
	p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 40)})
	p.y.Stalled()
	p.pass(5 * time.Second)
	p.y.Recovering(p.now)
	p.pass(time.Second)
	if d := p.c.Take(p.now, p.k, p.eff, 1); !d.Outage {
		t.Error("a counter that was not exchanged since is decided as always")
	}
	if d := p.c.Take(p.now, ratelimit.Key{ClientID: "client", Username: "new"}, p.eff, 1); d.Outage {
		t.Error("a new key is decided on a share")
	}
	p.finish(p.begin(), Result{Status: Applied, Read: true})
	if d := p.c.Take(p.now, p.k, p.eff, 1); d.Outage {
		t.Error("a counter that was exchanged since is decided on a share")
	}
	p.y.Recovered()
	p.y.Recovering(p.now) // no effect without an outage
	if d := p.c.Take(p.now, p.k, p.eff, 1); d.Outage {
		t.Error("recovering from nothing")
	}
}

// TestGrace: OnOutage decides only if g is older than a few spacings or the counter's own write
// fails.
func TestGrace(t *testing.T) {
	p := play(t, perMinute(100))
	p.y.SetInstances(4)
	p.read(nil)
	p.y.Stalled()
	outage := func() bool { d := p.c.Take(p.now, p.k, p.eff, 1); return d.Outage }
	if outage() {
		t.Error("decided on a share at once")
	}
	p.pass(400 * time.Millisecond)
	if outage() {
		t.Error("decided on a share after 400 ms")
	}
	p.pass(10 * time.Millisecond)
	if !outage() {
		t.Error("not decided on a share after 410 ms")
	}
	setStalled(p.y, p.now, false)
	p.finish(p.begin(), Result{})
	if outage() {
		t.Error("decided on a share after one failure")
	}
	p.finish(p.begin(), Result{Read: true})
	if !outage() {
		t.Error("not decided on a share after two failures")
	}
	task := p.begin()
	p.finish(task, Result{Status: Applied, Read: true, Document: &ratelimit.Document{Version: 1, Frame: 60_000, Mine: task.Seq, Frames: frame(60_000, 1)}})
	if outage() {
		t.Error("decided on a share although the write is confirmed")
	}
}

// TestHugeCost: no number of requests, however large, is admitted through an overflow.
func TestHugeCost(t *testing.T) {
	for _, n := range []int64{6, ratelimit.MaxRequests, math.MaxInt32, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64} {
		p := play(t, perMinute(5))
		p.y.SetInstances(10_000)
		for _, stalled := range []bool{false, true} {
			setStalled(p.y, p.now, stalled)
			p.pass(time.Second)
			d := p.c.Take(p.now, p.k, p.eff, n)
			if d.Outcome != ratelimit.Denied || d.RetryAfter != ratelimit.Never {
				t.Errorf("%d requests: %+v", n, d)
			}
		}
		p.counts(0, 1, 1)
	}
}

// TestRefund refunds requests that still count, written or not.
func TestRefund(t *testing.T) {
	p := play(t, perMinute(5), ratelimit.NewLimit("per-hour", 100, time.Hour))
	refund := func(admitted time.Time, n int64, want bool) {
		t.Helper()
		check.Equal(t, fmt.Sprint("refund of ", n), p.c.Refund(p.now, admitted, p.k, p.eff, n), want)
	}
	p.take(4, ratelimit.Allowed)
	p.take(1, ratelimit.Denied)
	refund(p.now, 2, true)
	p.counts(0, 3, 3)
	p.take(2, ratelimit.Allowed)
	p.take(1, ratelimit.Denied)

	p.finish(p.begin(), Result{Status: Applied, Read: true})
	p.finish(p.begin(), Result{Status: Applied, Read: true})
	refund(p.now, 3, true)
	p.counts(5, -3, 2)
	task := p.begin()
	same(t, "what is written of it", frame(60_000, -3), task.Delta)
	p.finish(task, Result{Status: Applied})
	p.counts(2, 0, 2)

	admitted := p.now
	p.pass(2 * time.Minute)
	refund(admitted, 1, true) // of the longer limit
	if us := p.c.Usage(p.now, p.k); len(us) != 1 || us[0].Unflushed != 1 {
		t.Errorf("left: %+v", us)
	}
	refund(p.now, 50, false)
	p.c.Reset(p.k)
	refund(p.now, 1, false)
}

// TestPlain: the fast path, which handles nearly every key, decides and counts like the general
// path.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ratelimit.NewLimit("plain", rapid.Int64Range(1, 40).Draw(t, "requests"), rapid.SampledFrom([]time.Duration{
			time.Millisecond, 7 * time.Millisecond, time.Second, time.Minute, time.Hour,
		}).Draw(t, "window"))
		short, k, eff := single(l)
		// With a source to count, a request takes the general path.
		long := NewCounters(1000)
		slow := &ratelimit.Effective{User: eff.User, Client: eff.Client, Mode: ratelimit.Enforce}
		slow.Source = ratelimit.NewLimits([]ratelimit.Limit{ratelimit.NewLimit("source", ratelimit.MaxRequests, l.Window)})
		slow = slow.ForRequest(0, "192.0.2.1")
		if !eff.Plain(eff.User) || slow.Plain(slow.User) {
			t.Fatal("both take the same path")
		}
		a, b := attach(short), attach(long)
		now := int64(epoch)
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			now += drawStep(t, l.Window)
			x, y := short.Take(at(now), k, eff, 1), long.Take(at(now), k, slow, 1)
			if x.Outcome != y.Outcome || x.Soft != y.Soft || x.RetryAfter != y.RetryAfter || *x.Status(0) != *y.Status(0) || x.Exceeded() != y.Exceeded() {
				t.Fatalf("short %+v, general %+v", x, y)
			}
			p := a.Due(at(now), nil)
			q := slices.DeleteFunc(b.Due(at(now), nil), func(p Plan) bool { return long.shards[p.shard].kind != ofUsers })
			if len(p) != len(q) || len(p) > 0 && (p[0].In != q[0].In || p[0].Lazy != q[0].Lazy) {
				t.Fatalf("short plans %+v, general %+v", p, q)
			}
			if rapid.IntRange(0, 9).Draw(t, "exchange") == 0 {
				for _, y := range []*Sync{a, b} {
					for _, plan := range y.Of(k) {
						task, _ := y.Begin(at(now), plan.Ticket, now)
						y.Finish(at(now), &task, Result{Status: Applied, Read: task.Read, NewEtag: 1})
					}
				}
			}
		}
	})
}
