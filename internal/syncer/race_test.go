//go:build race

package syncer_test

import "runtime"

// A simulation takes six times as long under the race detector. The races that it finds depend on
// which code runs concurrently, and hardly on the figures of a case. So tests that repeat a
// simulation with other seeds or figures run only a part of the cases, see [sample]. CI also runs
// the package without the detector, with all cases.
const (
	underRace       = true
	usualRuns       = 25 // of TestSimulation
	usualStrictRuns = 20
)

// The race detector crashes with two processors when two goroutines of a synctest bubble receive
// from channels of timers that are due at the same moment (golang/go#78156). A simulated cluster
// does that all the time. The races that the detector finds depend on the order of events, hardly
// on the number of processors.
func init() { runtime.GOMAXPROCS(1) }
