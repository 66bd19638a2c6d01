//go:build race

package syncer_test

import "runtime"

// A simulation takes six times as long under the race detector. The races that it finds depend on
// which code runs concurrently, and hardly on the figures of a case. So it runs fewer seeds, and no
// studies: tests that only check figures are in files without the race detector. Every statement that
// these execute, the other tests execute as well, here or in the package of the statement. CI also
// runs the package without the detector, with all tests and seeds.
const (
	underRace       = true
	usualRuns       = 25 // of TestSimulation
	usualStrictRuns = 20
	usualFrameRuns  = 2 // of TestShorterFramesFree
)

// The race detector crashes with two processors when two goroutines of a synctest bubble receive
// from channels of timers that are due at the same moment (golang/go#78156). A simulated cluster
// does that all the time. The races that the detector finds depend on the order of events, hardly
// on the number of processors.
func init() { runtime.GOMAXPROCS(1) }
