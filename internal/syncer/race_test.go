//go:build race

package syncer_test

import "runtime"

// A simulation takes six times as long under the race detector, and what that finds depends on which
// code runs beside which, hardly on the figures of a case. So of the tests that repeat a simulation
// with other seeds or figures a part is run, see [sample]. CI runs the package without the detector
// as well, and there all of it.
const (
	underRace       = true
	usualRuns       = 25 // of TestSimulation
	usualStrictRuns = 20
)

// The race detector crashes where two goroutines of a synctest bubble receive from channels of
// timers that are due at the same moment, on two processors (golang/go#78156). A simulated cluster
// does that all the time. What it finds depends on the order of events, hardly on the number of
// processors.
func init() { runtime.GOMAXPROCS(1) }
