package clusters

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// requests records n requests in the first seconds of a minute. The first admitted ones of them were admitted.
func (u *truth) requests(minute, n, admitted int) {
	for i := range n {
		at := time.Duration(minute)*time.Minute + time.Duration(i)*100*time.Millisecond
		u.request(begin.Add(at), ratelimit.Key{ClientID: "client", Username: "user"}, i < admitted)
	}
}

func tenAMinute(t *testing.T) *truth {
	t.Helper()
	return newTruth(t, &config{limit: ratelimit.NewLimit("limit", 10, time.Minute)})
}

// TestFalseDenials: a denial is false until one counter would deny too.
func TestFalseDenials(t *testing.T) {
	t.Parallel()
	for admitted, want := range map[int]int64{0: 1, 4: 1, 9: 1, 10: 0, 12: 0} {
		u := tenAMinute(t)
		u.requests(0, admitted+1, admitted)
		check.Equal(t, "false denials", u.falseDenials, want)
	}
	u := tenAMinute(t)
	u.requests(0, 13, 9) // no request after them was admitted, so all four are false
	check.Equal(t, "false denials", u.falseDenials, 4)
}

// TestFullWindows: only windows count in which a key was offered its limit. Its first one counts separately.
func TestFullWindows(t *testing.T) {
	t.Parallel()
	u := tenAMinute(t)
	for minute, n := range []struct{ offered, admitted int }{
		{9, 9}, {12, 11}, {9, 9}, {10, 9}, {0, 0}, {20, 13}, {5, 5}, {15, 2},
	} {
		u.requests(minute, n.offered, n.admitted)
	}
	now := begin.Add(7*time.Minute + 30*time.Second)
	check.Equal(t, "windows", u.end(now), windows{count: 2, mean: 1.1, worst: 1.3, first: 1.1}) // the last window is not over
}
