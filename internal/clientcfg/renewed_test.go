package clientcfg

import (
	"testing"
	"time"
)

// TestRenewedByTheClock: a directory that was read in the future, before the clock was set back, is not
// taken for a new one.
func TestRenewedByTheClock(t *testing.T) {
	var s Source
	for age, want := range map[time.Duration]bool{time.Minute: true, 3 * time.Minute: false, -time.Minute: false} {
		checked := time.Now().Add(-age)
		s.checked.Store(&checked)
		if got := s.renewed(time.Now().Round(0).Add(-2 * time.Minute)); got != want {
			t.Errorf("read %v ago: renewed is %t, want %t", age, got, want)
		}
	}
}
