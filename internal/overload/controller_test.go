package overload

import (
	"math"
	"testing"
	"time"

	"oauth-server/internal/check"
)

const target = 5 * time.Millisecond

// TestOneLongWaitMovesLittle checks that a wait counts for at most three targets above the target.
func TestOneLongWaitMovesLittle(t *testing.T) {
	share := func(before, wait time.Duration) float64 {
		c := controller{last: before, refused: 0.5}
		return c.step(wait, target, beat, 0, 1)
	}
	three, four, longest := share(0, 3*target), share(0, 4*target), share(0, time.Minute)
	if half := share(0, 7*target/2); math.Abs(four-half-(half-three)) > 1e-9 || four <= three || four != longest {
		t.Errorf("share %.4f at a wait of three targets, %.4f of three and a half, %.4f of four, %.4f of a minute; want it to grow until four", three, half, four, longest)
	}
	check.Equal(t, "share after a minute, relative to that after four targets", share(time.Minute, target)-share(4*target, target), 0)
}

// TestMoreRequests checks that the share follows the rate up only during an established overload,
// and always follows it down.
func TestMoreRequests(t *testing.T) {
	const above, below = target + 1, target - 1 // almost zero for the rest of the controller
	for name, tt := range map[string]struct {
		refused, rate float64
		wait          time.Duration
		want          float64
	}{
		"twice as many, established":              {0.11, 200, above, 1 - 0.89/2},
		"twice as many, not yet established":      {0.09, 200, above, 0.09},
		"twice as many, no overload":              {0.5, 200, below, 0.5},
		"a tenth less, established":               {0.5, 90, above, 1 - 0.5/0.9},
		"a tenth less, no overload":               {0.5, 90, below, 1 - 0.5/0.9},
		"half as many, all of which are admitted": {0.4, 50, above, 0},
		"as many": {0.5, 100, above, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			c := controller{refused: tt.refused, last: tt.wait, rate: 100}
			if got := c.step(tt.wait, target, time.Nanosecond, tt.rate, 1); math.Abs(got-tt.want) > 1e-6 {
				t.Errorf("share %.4f, want %.4f", got, tt.want)
			}
		})
	}
}
