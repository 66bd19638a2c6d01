package ratelimit

import (
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestFieldNames: the values are those of draft 08.
func TestFieldNames(t *testing.T) {
	limits := []Limit{NewLimit("client-user", 2, time.Minute), NewLimit("burst", 5, 1500*time.Millisecond)}
	d := Decision{limits: compile(limits, false)}
	d.status[0], d.status[1] = Status{1, 38}, Status{4, 2}
	policy, limit := d.Headers()
	check.Equal(t, "policy", policy, `"client-user";q=2;w=60, "burst";q=5;w=2`)
	check.Equal(t, "limit", limit, `"client-user";r=1;t=38, "burst";r=4;t=2`)
}

func TestDecisionOfNothing(t *testing.T) {
	d := Decision{Outcome: Trusted}
	check.Equal(t, "Usage", d.Usage(), 0)
	check.Equal(t, "Counted", d.Counted(), false)
	check.Equal(t, "String", d.Outcome.String(), "trusted")
	check.Equal(t, "String", Outcome(99).String(), "outcome(99)")
	for range d.Limits() {
		t.Fatal("no limit applied")
	}
}
