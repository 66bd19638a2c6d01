//go:build !race

package syncer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/syncer/clock"
)

// wrongClock is a fault of some clocks.
type wrongClock struct {
	name       string
	limits     int64        // the most that may be admitted in a minute
	alone      clock.Source // the clock that stands alone meanwhile, at the second instance
	begin, end func(tr *trial, wrong time.Duration)
}

// right checks that an instance has taken the time of the others.
func (tr *trial) right(m *member) {
	if ahead := time.Until(m.now()); ahead.Abs() > 100*time.Millisecond {
		tr.t.Errorf("it begins %v ahead", ahead)
	}
}

func wrongClocks() []wrongClock {
	truth := func(tr *trial, _ time.Duration) { tr.net.lie(nil, 0) }
	stays := func(*trial, time.Duration) {}
	return []wrongClock{
		{
			"the wall clock of one is set", 1, clock.Wall,
			func(tr *trial, wrong time.Duration) { tr.cluster[1].wall.step(wrong) },
			func(tr *trial, wrong time.Duration) { tr.cluster[1].wall.step(-wrong) },
		},
		{"the store's clock jumps for one", 1, clock.Store, func(tr *trial, wrong time.Duration) { tr.net.lie(tr.cluster[1], wrong) }, truth},
		{"the store's clock jumps for all", 1, clock.Store, func(tr *trial, wrong time.Duration) { tr.net.lie(nil, wrong) }, truth},
		{"a newcomer with a wrong wall clock", 1, clock.NoClock, func(tr *trial, wrong time.Duration) { tr.right(tr.join(wrong, 0)) }, stays},
		{"a newcomer with a wrong store's clock", 1, clock.NoClock, func(tr *trial, wrong time.Duration) { tr.right(tr.join(0, wrong)) }, stays},
		{"a newcomer whose clocks agree on a wrong time", 2, clock.NoClock, func(tr *trial, wrong time.Duration) { tr.join(wrong, wrong) }, stays},
		{"both clocks of one change alike", 2, clock.NoClock, func(tr *trial, wrong time.Duration) {
			m := tr.join(0, 0)
			tr.run(time.Minute)
			tr.net.lie(m, wrong)
			m.wall.step(wrong)
		}, stays},
	}
}

// TestWrongClocks: one wrong clock admits nothing extra, and a newcomer asks the others. The time of
// an instance is only wrong if its two clocks agree on a wrong time: it then admits at most one extra
// limit in a window. No counts are lost.
func TestWrongClocks(t *testing.T) {
	steps := []time.Duration{time.Hour, -5 * time.Minute, -70 * time.Second}
	if *numbers {
		steps = clockSteps
	}
	for _, fault := range wrongClocks() {
		for _, wrong := range steps {
			t.Run(fmt.Sprintf("%s %v", fault.name, wrong), func(t *testing.T) {
				oneProcessor(t)
				synctest.Test(t, func(t *testing.T) {
					tr := newTrial(t, 3, 60, 20)
					tr.run(150 * time.Second)
					fault.begin(tr, wrong)
					tr.run(5 * time.Minute)
					st := tr.cluster[1].syncer.Stats().Clock
					if off := map[clock.Source]time.Duration{clock.Wall: st.Wall - wrong, clock.Store: st.Store - wrong}[fault.alone]; st.Alone != fault.alone || off.Abs() > time.Second {
						t.Errorf("the clocks compare as %+v", st)
					}
					fault.end(tr, wrong)
					tr.run(2 * time.Minute)
					tr.check(fmt.Sprintf("%s by %v", fault.name, wrong), fault.limits)
				})
			})
		}
	}
}
