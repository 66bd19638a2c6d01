package heapfloor

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// goal returns the heap size, in MiB, at which the next collection starts.
func goal() int64 { return int64(read("/gc/heap/goal:bytes")) / mib }

func wantGoal(t *testing.T, when string, from, to int64) {
	t.Helper()
	if got := goal(); got < from || got > to {
		t.Errorf("%s the goal is %d MiB, want %d to %d", when, got, from, to)
	}
}

func wantProcs(t *testing.T, when string, want int) {
	t.Helper()
	if got := runtime.GOMAXPROCS(0); got != want {
		t.Errorf("%s GOMAXPROCS is %d, want %d", when, got, want)
	}
}

// raising returns a keeper with 4 MiB live, a floor of 32 MiB and a raised floor of 128 MiB.
func raising(t *testing.T) *Keeper {
	t.Helper()
	unset(t)
	before := runtime.GOMAXPROCS(runtime.NumCPU())
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	hold(t, 4)
	k := newKeeper(Choice{Floor: 32 * mib, Raised: 128 * mib}, usual)
	k.few = runtime.NumCPU() + 1 // independent of the machine of the test
	t.Cleanup(k.Stop)
	runtime.GC()
	k.adjust()
	wantGoal(t, "at first", 31, 35)
	return k
}

// TestRaisedDuringBursts: more than eight calls in two seconds raise the floor. Two seconds after
// the last of them it is lowered. Fewer calls never raise it.
func TestRaisedDuringBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := raising(t)
		for range 5 * burst {
			k.Raise()
			<-time.After(burstFor/burst + time.Millisecond)
		}
		wantGoal(t, "with four in a second", 31, 35)
		for range 5 * burst {
			k.Raise()
			<-time.After(burstFor / burst / 2)
		}
		wantGoal(t, "with eight in a second", 126, 130)
		runtime.GC()
		k.adjust()
		wantGoal(t, "after a collection", 126, 130)
		wantProcs(t, "with eight in a second", runtime.NumCPU()+1)
		<-time.After(burstFor)
		synctest.Wait()
		wantGoal(t, "two seconds later", 31, 35)
		wantProcs(t, "two seconds later", runtime.NumCPU())
	})
}

// TestMemoryIsReturnedAfterBursts: an idle server uses as much memory as before the burst, even if
// no collection runs for a long time.
func TestMemoryIsReturnedAfterBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := raising(t)
		inUse := func() int64 {
			metrics.Read(k.samples)
			return (k.value(objects) + k.value(free)) / mib
		}
		for range burst + 1 {
			k.Raise()
		}
		waste(100)
		if n := inUse(); n < 90 {
			t.Fatalf("raised the heap has %d MiB, want 90 or more", n)
		}
		<-time.After(burstFor)
		synctest.Wait()
		if n := inUse(); n > 32 {
			t.Errorf("later it has %d MiB, above the floor of 32", n)
		}
	})
}

// TestGrowthIsBoundedWhileRaised: like [TestSuddenGrowthIsBounded].
func TestGrowthIsBoundedWhileRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := raising(t)
		for range burst + 1 {
			k.Raise()
		}
		hold(t, 60)
		runtime.GC() // without a new setting afterwards
		wantGoal(t, "with 60 MiB live", 100, (128+32)*5/4)
	})
}

func TestStopWhileRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := raising(t)
		for range burst + 1 {
			k.Raise()
		}
		k.Stop()
		wantProcs(t, "stopped", runtime.NumCPU())
		stopped := knobs()
		if stopped != k.before {
			t.Errorf("%+v, before %+v", stopped, k.before)
		}
		k.Raise()
		<-time.After(2 * burstFor)
		synctest.Wait()
		if got := knobs(); got != stopped {
			t.Errorf("later %+v, after Stop %+v", got, stopped)
		}
	})
}

// TestChosenProcessorsStay: a GOMAXPROCS that differs from the number of processors is not changed.
func TestChosenProcessorsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := raising(t)
		chosen := k.few
		runtime.GOMAXPROCS(chosen)
		for range burst + 1 {
			k.Raise()
		}
		wantGoal(t, "raised", 126, 130)
		wantProcs(t, "raised", chosen)
	})
}

// TestNotRaisedWithManyProcessors: many processors check many passwords at once, which hold enough
// memory.
func TestNotRaisedWithManyProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := raising(t)
		k.few = runtime.NumCPU() - 1
		for range burst + 1 {
			k.Raise()
		}
		wantGoal(t, "with many", 31, 35)
		wantProcs(t, "with many", runtime.NumCPU())
	})
}
