package syncer_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestJustInTime: a call that takes exactly as long as it may, and succeeds, leaves
// no outage behind, whether it ends before or after it was found to be late.
func TestJustInTime(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			store := &wrapped{took: 250 * time.Millisecond}
			m := alone(t, store, nil)
			m.take(keyOf(0), policyOf(t, perMinute), 1)
			pass(400 * time.Millisecond)
			mustEqual(t, "calls", 1, store.calls.Load())
			mustEqual(t, "stalled", false, m.syncer.Stats().Stalled)
		})
	}
}
