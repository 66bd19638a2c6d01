package ratelimit

import (
	"testing"
	"time"
)

// TestFieldNames: every name comes from the table, for each draft.
func TestFieldNames(t *testing.T) {
	limits := []Limit{NewLimit("client-user", 2, time.Minute), NewLimit("burst", 5, 1500*time.Millisecond)}
	d := Decision{limits: compile(limits, false)}
	d.status[0], d.status[1] = Status{1, 38}, Status{4, 2}
	for _, tt := range []struct {
		draft         draft
		policy, limit string
	}{
		{draft08, `"client-user";q=2;w=60, "burst";q=5;w=2`, `"client-user";r=1;t=38, "burst";r=4;t=2`},
		{proposed, `"client-user";q=2;w=60, "burst";q=5;w=2`, `"client-user";a=1;w=38, "burst";a=4;w=2`},
	} {
		w := fieldsOf(tt.draft)
		mustEqual(t, "policy of draft "+string(tt.draft), tt.policy, w.policy(limits))
		mustEqual(t, "limit of draft "+string(tt.draft), tt.limit, w.limit(&d))
	}
	mustEqual(t, "draft that answers follow", namesOf[draft08], Fields())
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
