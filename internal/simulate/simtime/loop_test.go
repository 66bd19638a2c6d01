package simtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/background"
	"oauth-server/internal/check"
	"oauth-server/internal/simulate/simtime"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// journal records events and their times.
type journal struct {
	loop  *simtime.Loop
	lines []string
}

func (j *journal) add(what string, args ...any) {
	j.lines = append(j.lines, fmt.Sprintf("%v ", j.loop.Now().Sub(noon))+fmt.Sprintf(what, args...))
}

func (j *journal) is(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(j.lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func begin() (*simtime.Loop, *journal) {
	l := simtime.New(noon)
	return l, &journal{loop: l}
}

func sleep(l *simtime.Loop, d time.Duration) { l.NewSignal().Wait(context.Background(), d) }

// TestTimePasses: time advances while all goroutines wait, in the order of the times they wait for.
func TestTimePasses(t *testing.T) {
	l, j := begin()
	all := l.NewTasks()
	for _, d := range []time.Duration{3 * time.Hour, time.Second, time.Hour, 0} {
		all.Go(func() {
			sleep(l, d)
			j.add("slept %v", d)
			sleep(l, d)
			j.add("and again")
		})
	}
	l.AfterFunc(2*time.Second, func() { j.add("timer") })
	l.RunUntil(noon.Add(2 * time.Hour))
	j.add("here")
	l.RunUntil(noon.Add(5 * time.Hour))
	j.add("there")
	j.is(t, "0s slept 0s", "0s and again", "1s slept 1s", "2s timer", "2s and again", "1h0m0s slept 1h0m0s",
		"2h0m0s and again", "2h0m0s here", "3h0m0s slept 3h0m0s", "5h0m0s there")
}

// TestSignal: a signal wakes the current wait or the next one, once.
func TestSignal(t *testing.T) {
	l, j := begin()
	s := l.NewSignal()
	l.NewTasks().Go(func() {
		for range 3 {
			s.Wait(context.Background(), time.Minute)
			j.add("woken")
		}
		sleep(l, time.Minute)
		s.Wait(context.Background(), time.Minute)
		j.add("was set")
		s.Wait(context.Background(), time.Minute)
		j.add("was not set")
	})
	l.AfterFunc(5*time.Second, s.Set)
	l.AfterFunc(10*time.Second, s.Set)
	l.AfterFunc(75*time.Second, func() { s.Set(); s.Set() })
	l.RunUntil(noon.Add(time.Hour))
	j.is(t, "5s woken", "10s woken", "1m10s woken", "2m10s was set", "3m10s was not set")
}

// TestTasks: Wait returns when the last task has ended, even one that began during the wait.
func TestTasks(t *testing.T) {
	l, j := begin()
	some := l.NewTasks()
	some.Go(func() {
		sleep(l, time.Second)
		some.Go(func() { sleep(l, time.Second) })
		some.Go(func() { sleep(l, 2*time.Second) })
	})
	for range 2 {
		l.NewTasks().Go(func() { some.Wait(); j.add("waited") })
	}
	l.RunUntil(noon.Add(time.Minute))
	l.NewTasks().Go(func() { some.Wait(); j.add("no wait") })
	l.RunUntil(noon.Add(time.Hour))
	j.is(t, "3s waited", "3s waited", "1m0s no wait")
}

// TestDeadline: a context ends at its deadline and ends the waits under it.
func TestDeadline(t *testing.T) {
	l, j := begin()
	l.NewTasks().Go(func() {
		outer, cancel := l.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		inner, cancelInner := l.WithTimeout(outer, time.Hour)
		defer cancelInner()
		j.add("%t", l.NewSignal().Wait(inner, time.Second))
		j.add("%t %v", l.NewSignal().Wait(inner, time.Hour), inner.Err())
		j.add("%t %v", l.NewSignal().Wait(context.WithoutCancel(inner), time.Second), outer.Err())
	})
	l.RunUntil(noon.Add(time.Minute))
	j.is(t, "1s true", "3s false context deadline exceeded", "4s true context deadline exceeded")
}

// TestCancel: waits under a cancelled context end once another goroutine waits for their tasks.
func TestCancel(t *testing.T) {
	l, j := begin()
	ctx, cancel := context.WithCancel(context.Background())
	loops := background.NewGroupOn(ctx, l, nil, nil)
	for i := range 3 {
		loops.Go("loop", func(ctx context.Context) error {
			for loops.Sleep(ctx, time.Duration(i+2)*time.Second) {
				j.add("loop %d", i)
			}
			j.add("loop %d ends", i)
			return nil
		})
	}
	l.NewTasks().Go(func() {
		sleep(l, 4500*time.Millisecond)
		cancel()
		loops.Wait()
		j.add("all ended")
	})
	l.RunUntil(noon.Add(time.Minute))
	j.is(t, "2s loop 0", "3s loop 1", "4s loop 2", "4s loop 0",
		"4.5s loop 1 ends", "4.5s loop 2 ends", "4.5s loop 0 ends", "4.5s all ended")
}

// TestStopTimer: a stopped timer does nothing, and stopping one that no longer runs returns false.
func TestStopTimer(t *testing.T) {
	l, j := begin()
	stop := l.AfterFunc(time.Second, func() { j.add("stopped") })
	late := l.AfterFunc(2*time.Second, func() { j.add("not stopped") })
	for i := range 20 { // other timers around them in the heap
		l.AfterFunc(time.Duration(i*i%7)*time.Second/2, func() {})
	}
	if !stop.Stop() || stop.Stop() {
		t.Error("stop() is wrong about whether it stopped the timer")
	}
	l.RunUntil(noon.Add(time.Minute))
	if late.Stop() {
		t.Error("a timer was stopped that had been done")
	}
	j.is(t, "2s not stopped")
}

// TestPanic: an unrecovered panic reaches the caller of RunUntil.
func TestPanic(t *testing.T) {
	l, _ := begin()
	l.NewTasks().Go(func() {
		sleep(l, time.Second)
		panic("boom")
	})
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("recovered %v", v)
		}
	}()
	l.RunUntil(noon.Add(time.Minute))
}

// TestClose: Close ends goroutines wherever they wait and runs their deferred functions. The
// goroutines see no error.
func TestClose(t *testing.T) {
	leaked := goleak.IgnoreCurrent()
	l, j := begin()
	loops := background.NewGroupOn(context.Background(), l, nil, func(string) { t.Error("a loop panicked") })
	loops.Go("loop", func(ctx context.Context) error {
		for loops.Sleep(ctx, time.Hour) {
		}
		return nil
	})
	all := l.NewTasks()
	all.Go(func() {
		defer j.add("closed")
		defer sleep(l, time.Hour) // it ends too
		defer all.Go(func() { j.add("new") })
		sleep(l, time.Hour)
		j.add("slept")
	})
	l.NewTasks().Go(func() { all.Wait(); j.add("waited") })
	l.NewTasks().Go(func() { j.add("ended") })
	l.RunUntil(noon.Add(time.Minute))
	l.NewTasks().Go(func() { j.add("begun") })
	l.Close()
	l.Close()
	l.RunUntil(noon.Add(24 * time.Hour))
	j.is(t, "0s ended", "1m0s closed")
	goleak.VerifyNone(t, leaked)
}

// TestCloseAfterPanic: after a panic Close ends the other goroutines.
func TestCloseAfterPanic(t *testing.T) {
	leaked := goleak.IgnoreCurrent()
	l, _ := begin()
	for i := range 3 {
		l.NewTasks().Go(func() {
			for range 5 - i {
				sleep(l, time.Second)
			}
			panic("boom")
		})
	}
	func() {
		defer func() { check.Equal(t, "panic", recover(), any("boom")) }()
		defer l.Close()
		l.RunUntil(noon.Add(time.Minute))
	}()
	goleak.VerifyNone(t, leaked)
}

// BenchmarkSleep measures one wait of one of a thousand goroutines.
func BenchmarkSleep(b *testing.B) {
	l := simtime.New(noon)
	for i := range 1000 {
		l.NewTasks().Go(func() {
			for {
				sleep(l, time.Second+time.Duration(i))
			}
		})
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%1000 == 0 {
			l.RunUntil(l.Now().Add(time.Second))
		}
	}
}
