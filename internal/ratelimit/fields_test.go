package ratelimit

import (
	"testing"
	"time"
)

// TestFieldNames: the values are those of draft 08.
func TestFieldNames(t *testing.T) {
	limits := []Limit{NewLimit("client-user", 2, time.Minute), NewLimit("burst", 5, 1500*time.Millisecond)}
	d := Decision{limits: compile(limits, false)}
	d.status[0], d.status[1] = Status{1, 38}, Status{4, 2}
	policy, limit := d.Headers()
	mustEqual(t, "policy", `"client-user";q=2;w=60, "burst";q=5;w=2`, policy)
	mustEqual(t, "limit", `"client-user";r=1;t=38, "burst";r=4;t=2`, limit)
}

func TestDecisionOfNothing(t *testing.T) {
	d := Decision{Outcome: Trusted}
	mustEqual(t, "Usage", 0, d.Usage())
	mustEqual(t, "Counted", false, d.Counted())
	mustEqual(t, "String", "trusted", d.Outcome.String())
	mustEqual(t, "String", "outcome(99)", Outcome(99).String())
	for range d.Limits() {
		t.Fatal("no limit applied")
	}
}
