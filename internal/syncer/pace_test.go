package syncer

import (
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestPaceWait: the next collection is at the next point on the grid of the pace.
func TestPaceWait(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tc := range []struct{ now, next, wait, then time.Duration }{
		{0, 250 * ms, 250 * ms, 250 * ms},
		{249 * ms, 250 * ms, ms, 250 * ms},
		{250 * ms, 250 * ms, 250 * ms, 500 * ms}, // on time
		{251 * ms, 250 * ms, 249 * ms, 500 * ms}, // a little late
		{499 * ms, 250 * ms, ms, 500 * ms},
		{500 * ms, 250 * ms, 250 * ms, 750 * ms}, // late by one
		{7260 * ms, 250 * ms, 240 * ms, 7500 * ms},
	} {
		p := newPace(time.Second, 0)
		p.next = tc.next
		check.Equal(t, "wait at "+tc.now.String(), p.wait(tc.now), tc.wait)
		check.Equal(t, "next at "+tc.now.String(), p.next, tc.then)
	}
}
