package cluster

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// judged is a judge of a limit of 10 a minute, and its key.
type judged struct {
	*judge

	key ratelimit.Key
}

func newJudged(t *testing.T, begin time.Time) judged {
	t.Helper()
	j, err := newJudge(&Config{Limit: ratelimit.NewLimit("limit", 10, time.Minute), Seed: 1}, begin)
	check.OK(t, err)
	return judged{j, ratelimit.Key{ClientID: "client", Username: "user"}}
}

// requests records n requests in the first seconds of a minute. The first admitted ones of them
// were admitted.
func (j judged) requests(minute, n, admitted int) {
	for i := range n {
		at := time.Duration(minute)*time.Minute + time.Duration(i)*100*time.Millisecond
		j.request(noon.Add(at), j.key, i < admitted)
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestFalseDenials: a denial is false until one counter would deny too.
func TestFalseDenials(t *testing.T) {
	t.Parallel()
	for admitted, want := range map[int]int64{0: 1, 4: 1, 9: 1, 10: 0, 12: 0} {
		j := newJudged(t, noon)
		j.requests(0, admitted+1, admitted)
		check.Equal(t, "false denials", j.endPoint().FalseDenials, want)
	}
	j := newJudged(t, noon)
	j.requests(0, 13, 9) // no request after them was admitted, so all four are false
	check.Equal(t, "false denials", j.endPoint().FalseDenials, 4)
	check.Equal(t, "in all", j.over.FalseDenials, 4)
}

// TestFullWindows: only windows count in which a key was offered its limit. Its first one counts
// separately.
func TestFullWindows(t *testing.T) {
	t.Parallel()
	j := newJudged(t, noon)
	for minute, n := range []struct{ offered, admitted int }{
		{9, 9}, {12, 11}, {9, 9}, {10, 9}, {0, 0}, {20, 13}, {5, 5}, {15, 2},
	} {
		j.requests(minute, n.offered, n.admitted)
	}
	now := noon.Add(7*time.Minute + 30*time.Second)
	check.Equal(t, "windows", j.end(now), Windows{Count: 2, Mean: 1.1, Worst: 1.3, First: 1.1}) // the last window is not over
	j = newJudged(t, noon.Add(7*time.Second))
	j.requests(0, 11, 11) // requests were not sent during all of it
	j.requests(1, 10, 10)
	check.Equal(t, "windows", j.end(noon.Add(2*time.Minute)), Windows{First: 1})
}
