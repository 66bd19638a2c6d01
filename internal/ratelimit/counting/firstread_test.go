package counting

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// fresh is a player with a key that its process has not read yet.
type fresh struct{ *player }

func newFresh(t *testing.T, limits ...ratelimit.Limit) *fresh {
	t.Helper()
	c, k, eff := single(limits...)
	return &fresh{&player{t: t, c: c, y: attach(c), k: k, eff: eff, now: at(epoch)}}
}

// send sends requests that may wait.
func (f *fresh) send(ctx context.Context, n int) (all []*reply) {
	e := f.eff
	for range n {
		a := &reply{}
		go func() {
			d, _ := f.c.Await(ctx, f.now, f.k, e, 1)
			a.Store(&d)
		}()
		synctest.Wait()
		all = append(all, a)
	}
	return all
}

// reply is the decision on a request; nil while it waits.
type reply = atomic.Pointer[ratelimit.Decision]

// read is the exchange of every counter that is due, with documents of so many requests.
func (f *fresh) read(counts ...int64) {
	f.t.Helper()
	began := 0
	for i, p := range f.y.Due(f.now, nil) {
		task, ok := f.y.Begin(f.now, p.Ticket, int64(i+1))
		if !ok {
			continue // a later plan has replaced it
		}
		frame := task.Limit.Window.Milliseconds()
		name := ratelimit.FrameName(epoch-epoch%frame, frame)
		f.y.Finish(f.now, &task, Result{Read: true, Document: &ratelimit.Document{
			Version: 1, Etag: 1, Frame: frame, Frames: []ratelimit.FrameCount{{Name: name, Count: counts[began]}},
		}})
		began++
	}
	check.Equal(f.t, "read", began, len(counts))
	synctest.Wait()
}

// outcomes returns how many requests are admitted, denied, and not decided.
func outcomes(all []*reply) (admitted, denied, waiting int) {
	for _, a := range all {
		switch d := a.Load(); {
		case d == nil:
			waiting++
		case d.Rejected():
			denied++
		default:
			admitted++
		}
	}
	return admitted, denied, waiting
}

func (f *fresh) equal(what string, all []*reply, admitted, denied, waiting int) {
	f.t.Helper()
	a, d, w := outcomes(all)
	check.Equal(f.t, what+": admitted, denied, waiting", [3]int{a, d, w}, [3]int{admitted, denied, waiting})
}

// TestFirstRead: three requests of a new key pass, and the others wait for its document.
func TestFirstRead(t *testing.T) {
	for _, tc := range []struct {
		name             string
		used             int64
		admitted, denied int
	}{
		{"unused", 0, 20, 0},
		{"half used", 190, 10, 10},
		{"used up", 200, 3, 17},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFresh(t, perMinute(200))
				all := f.send(t.Context(), 20)
				f.equal("before", all, Unread, 0, 20-Unread)
				f.read(tc.used)
				f.equal("after", all, tc.admitted, tc.denied, 0)
			})
		})
	}
}

// TestFirstReadOfEachLimit: all limits of the key must be read.
func TestFirstReadOfEachLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFresh(t, perMinute(200), ratelimit.NewLimit("per-hour", 1000, time.Hour))
		all := f.send(t.Context(), 20)
		f.equal("before", all, Unread, 0, 20-Unread)
		f.read(0, 1000)
		f.equal("after", all, Unread, 20-Unread, 0)
	})
}

// TestFirstReadLate: without the document, requests are decided by what is known after 250 ms. One whose
// caller has gone is decided at once.
func TestFirstReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFresh(t, perMinute(5))
		ctx, cancel := context.WithCancel(t.Context())
		gone := f.send(ctx, Unread+1)[Unread]
		all := f.send(t.Context(), 3)
		cancel()
		synctest.Wait()
		check.Equal(t, "of a caller who has gone", gone.Load().Outcome, ratelimit.Allowed)
		f.equal("before", all, 0, 0, 3)
		time.Sleep(readWait) //nolint:forbidigo // simulated
		synctest.Wait()
		f.equal("after", all, 1, 2, 0)
		for _, a := range all {
			check.Equal(t, "outage", a.Load().Outage, false)
		}
	})
}

// TestFirstReadNeverAwaited: no request waits if none is enforced, if counts are not shared, or at the end of the process.
func TestFirstReadNeverAwaited(t *testing.T) {
	for name, change := range map[string]func(f *fresh){
		"dry-run": func(f *fresh) {
			s := ratelimit.DefaultSettings()
			s.Mode = ratelimit.DryRun
			f.eff = defaultsWith(f.t, s).For("client")
		},
		"outage":   func(f *fresh) { f.y.Stalled() },
		"stopping": func(f *fresh) { f.y.SetFinal() },
		"alone":    func(f *fresh) { f.c = NewCounters(0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFresh(t, perMinute(200))
				change(f)
				f.equal("at once", f.send(t.Context(), 10), 10, 0, 0)
			})
		})
	}
}

// TestFirstReadOfOtherLimits: while requests wait, the limits of the key are changed.
func TestFirstReadOfOtherLimits(t *testing.T) {
	for name, to := range map[string]ratelimit.Limit{
		"lower":         perMinute(4),
		"other frames":  ratelimit.NewLimit("per-minute", 4, time.Hour),
		"another limit": ratelimit.NewLimit("other", 4, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFresh(t, perMinute(200))
				all := f.send(t.Context(), Unread+3)
				f.eff = appliedBy(t, ratelimit.Policy{User: []ratelimit.Limit{to}, Client: []ratelimit.Limit{to}})
				all = append(all, f.send(t.Context(), 1)...)
				time.Sleep(readWait) //nolint:forbidigo // simulated
				synctest.Wait()
				_, _, waiting := outcomes(all)
				check.Equal(t, "waiting", waiting, 0)
			})
		})
	}
}
