package hashing

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/secret"
)

func TestBusySince(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(after, used time.Duration) usage { return usage{at: start.Add(after), used: used, known: true} }
	before, unknown := at(0, 70*time.Second), usage{at: start, used: 70 * time.Second}
	for name, tc := range map[string]struct {
		before, now usage
		processors  int
		want        bool
	}{
		"the server uses it all":  {before, at(time.Second, 71*time.Second), 1, true},
		"half of it":              {before, at(time.Second, 70500*time.Millisecond), 1, true},
		"another program uses it": {before, at(time.Second, 70400*time.Millisecond), 1, false},
		"one of four processors":  {before, at(time.Second, 71*time.Second), 4, false},
		"all of four processors":  {before, at(time.Second, 74*time.Second), 4, true},
		"not known before":        {unknown, at(time.Second, 71*time.Second), 1, false},
		"not known now":           {before, unknown, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "busy", tc.now.busySince(tc.before, tc.processors), tc.want)
		})
	}
}

// TestStarvedChild: a starved child is used again after it has answered.
func TestStarvedChild(t *testing.T) {
	p := open(t, failing("slow"), func(o *Options) {
		o.Patience = 50 * time.Millisecond
		o.busy = func() bool { return true }
	})
	before := p.pids()
	_, err := p.Compute(own("x"))
	check.Equal(t, "starved", errors.Is(err, secret.ErrStarved), true)
	check.Eventually(t, "the child has answered", func() bool { return p.late.Load() == 0 && p.idleChildren() == 1 })
	check.Equal(t, "children", p.pids(), before)
}

// TestStarvedChildThatNeverAnswers: the child is ended, and another one computes the next task.
func TestStarvedChildThatNeverAnswers(t *testing.T) {
	p := open(t, failing("silent"), func(o *Options) {
		o.Patience = time.Millisecond
		o.busy = func() bool { return true }
	})
	first := p.idle[0]
	_, err := p.Compute(own("x"))
	check.Equal(t, "starved", errors.Is(err, secret.ErrStarved), true)
	<-first.ended
	check.Eventually(t, "no child is late", func() bool { return p.late.Load() == 0 })
}

// TestLateChildWithProcessors: a child that is no longer starved and still has no result is ended.
// Other tasks are computed again long before the time limit for a hash of another program.
func TestLateChildWithProcessors(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	p := open(t, failing("silent"), func(o *Options) {
		o.Patience = 100 * time.Millisecond
		o.busy = busy.Load
	})
	late := p.idle[0]
	_, err := p.Compute(slow) // gets 1 s, and 10 s more while it is starved
	check.Equal(t, "starved", errors.Is(err, secret.ErrStarved), true)
	began := time.Now()
	busy.Store(false)
	<-late.ended
	check.Eventually(t, "no child is late", func() bool { return p.late.Load() == 0 })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("all others were refused for %v", took)
	}
}

// TestCloseWithALateChild: until a late child has answered, all tasks are refused and no other
// child is started. Close ends the late child.
func TestCloseWithALateChild(t *testing.T) {
	p := open(t, failing("silent"), func(o *Options) {
		o.Patience = time.Second
		o.busy = func() bool { return true }
	})
	before := p.pids()
	for _, password := range []string{"x", "y"} {
		_, err := p.Compute(own(password))
		check.Equal(t, "starved", errors.Is(err, secret.ErrStarved), true)
	}
	check.Equal(t, "children", p.pids(), before)
	p.Close()
	check.Equal(t, "late", p.late.Load(), int32(0))
	check.Equal(t, "children", len(p.pids()), 0)
}
