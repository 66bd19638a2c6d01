//go:build !race

package syncer_test

import (
	"runtime"
	"testing"
)

// oneProcessor lets a test that checks figures run on one processor. With two, a fifth of the processor
// time goes into locks of the scheduler, because all goroutines of a simulated cluster wait for the same
// moments. The simulations, which look for lost counts, run on all.
func oneProcessor(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}
