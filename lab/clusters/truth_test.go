package clusters

import (
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// truth compares the cluster's decisions with an exact log of each key, one counter that has all admitted requests, and
// one counter that decides on all requests.
type truth struct {
	limit  int64
	window time.Duration
	keys   map[ratelimit.Key]*keyLog

	// all counts everything that was admitted; one makes its own decisions on the same requests
	all, one       *counting.Counters
	counts, policy *ratelimit.Effective
	oneAdmitted    int64

	log          float64 // the most admitted in any window, in parts of the limit
	falseDenials int64
	highest      float64 // estimate since the last point, in parts of the limit
	windows      windows
	admitted     int64 // within the windows
}

// keyLog is the log of one key.
type keyLog struct {
	log  []int64 // times of admitted requests, since begin; entries before head are too old
	head int

	window            int64 // number of the current window
	offered, admitted int64 // in the current window
	later             bool  // it is not the key's first window that counts
}

// maxKeys is how many keys a simulation can have.
const maxKeys = 4_000_000

func newTruth(t *testing.T, cfg *config) *truth {
	t.Helper()
	return &truth{
		limit: cfg.limit.Requests, window: cfg.limit.Window, keys: map[ratelimit.Key]*keyLog{},
		all: counting.NewCounters(maxKeys), counts: policyOf(t, cfg.limit, ratelimit.MaxRequests),
		one: counting.NewCounters(maxKeys), policy: policyOf(t, cfg.limit, cfg.limit.Requests),
	}
}

// request records a request and its decision.
func (u *truth) request(now time.Time, k ratelimit.Key, admitted bool) {
	l := u.keys[k]
	if l == nil {
		l = &keyLog{window: -1}
		u.keys[k] = l
	}
	u.rotate(l, now)
	l.offered++
	if d := u.one.Take(now, k, u.policy, 1); !d.Rejected() {
		u.oneAdmitted++
	}
	estimate := u.estimate(now, k)
	if !admitted {
		if estimate+1 <= u.limit {
			u.falseDenials++
		}
		return
	}
	l.admitted++
	u.all.Take(now, k, u.counts, 1)
	u.highest = max(u.highest, float64(estimate+1)/float64(u.limit))
	at := int64(now.Sub(begin))
	l.log = append(l.log, at)
	u.log = max(u.log, float64(l.within(at-int64(u.window)))/float64(u.limit))
}

// within returns how many requests were admitted after a time, and drops the older ones.
func (l *keyLog) within(since int64) int64 {
	for l.head < len(l.log) && l.log[l.head] <= since {
		l.head++
	}
	if l.head > 16 && l.head > len(l.log)/2 {
		l.log, l.head = append(l.log[:0], l.log[l.head:]...), 0
	}
	return int64(len(l.log) - l.head)
}

// estimate returns the estimate of the counter that has all admitted requests.
func (u *truth) estimate(now time.Time, k ratelimit.Key) int64 {
	if of := u.all.Usage(now, k); len(of) > 0 {
		return int64(of[0].Estimate)
	}
	return 0
}

// rotate begins a new window of a key if the current one is over.
func (u *truth) rotate(l *keyLog, now time.Time) {
	number := now.UnixNano() / int64(u.window)
	if number == l.window {
		return
	}
	u.endWindow(l)
	l.window, l.offered, l.admitted = number, 0, 0
}

// endWindow counts the current window, if the key was offered its limit in it and requests were sent during all of it. Nine tenths are enough, because the first request comes a little after the
// beginning.
func (u *truth) endWindow(l *keyLog) {
	if l.offered < u.limit || l.window*int64(u.window) < begin.Add(-u.window/10).UnixNano() {
		return
	}
	ratio := float64(l.admitted) / float64(u.limit)
	if !l.later {
		l.later = true
		u.windows.first = max(u.windows.first, ratio)
		return
	}
	u.windows.count++
	u.admitted += l.admitted
	u.windows.worst = max(u.windows.worst, ratio)
}

// endPoint returns the highest estimate since the last point.
func (u *truth) endPoint() (estimate float64) {
	estimate, u.highest = u.highest, 0
	return estimate
}

// end counts the windows that have ended.
func (u *truth) end(now time.Time) windows {
	for _, l := range u.keys {
		if l.window < now.UnixNano()/int64(u.window) {
			u.endWindow(l)
		}
	}
	if u.windows.count > 0 {
		u.windows.mean = float64(u.admitted) / float64(u.windows.count*u.limit)
	}
	return u.windows
}
