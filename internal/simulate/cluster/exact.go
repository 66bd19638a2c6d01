package cluster

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// judge compares the cluster's decisions with the truth: an exact log of each key, one counter that
// has all admitted requests, and one counter that decides on all requests.
type judge struct {
	limit  int64
	window time.Duration
	begin  time.Time
	keys   map[ratelimit.Key]*keyLog

	// all counts everything that was admitted; one makes its own decisions on the same requests
	all, one       *ratelimit.Counters
	counts, policy *ratelimit.Effective
	oneAdmitted    int64

	over, point Over // since the begin, and since the last point
	windows     Windows
	admitted    int64 // within the windows
}

// keyLog is the log of one key.
type keyLog struct {
	log  []int64 // times of admitted requests, since begin; entries before head are too old
	head int

	window            int64 // number of the current window
	offered, admitted int64 // in the current window
	later             bool  // it is not the key's first window that counts
}

// maxKeys is how many keys a simulation can have in the counters of the judge.
const maxKeys = 4_000_000

func newJudge(cfg *Config, begin time.Time) (*judge, error) {
	counts, err := cfg.policy(ratelimit.MaxRequests)
	if err != nil {
		return nil, err
	}
	policy, err := cfg.policy(cfg.Limit.Requests)
	if err != nil {
		return nil, err
	}
	return &judge{
		limit: cfg.Limit.Requests, window: cfg.Limit.Window, begin: begin, keys: map[ratelimit.Key]*keyLog{},
		all: ratelimit.NewRepeatable(maxKeys, cfg.Seed), counts: counts,
		one: ratelimit.NewRepeatable(maxKeys, cfg.Seed), policy: policy,
	}, nil
}

// request records a request and its decision.
func (j *judge) request(now time.Time, k ratelimit.Key, admitted bool) {
	l := j.keys[k]
	if l == nil {
		l = &keyLog{window: -1}
		j.keys[k] = l
	}
	j.rotate(l, now)
	l.offered++
	if d := j.one.Take(now, k, j.policy, 1); !d.Rejected() {
		j.oneAdmitted++
	}
	estimate := j.estimate(now, k)
	if !admitted {
		if estimate+1 <= j.limit {
			j.point.FalseDenials++
		}
		return
	}
	l.admitted++
	j.all.Take(now, k, j.counts, 1)
	j.point.Estimate = max(j.point.Estimate, float64(estimate+1)/float64(j.limit))
	at := int64(now.Sub(j.begin))
	l.log = append(l.log, at)
	j.point.Log = max(j.point.Log, float64(l.within(at-int64(j.window)))/float64(j.limit))
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
func (j *judge) estimate(now time.Time, k ratelimit.Key) int64 {
	if u := j.all.Usage(now, k); len(u) > 0 {
		return int64(u[0].Estimate)
	}
	return 0
}

// rotate begins a new window of a key if the current one is over.
func (j *judge) rotate(l *keyLog, now time.Time) {
	number := now.UnixNano() / int64(j.window)
	if number == l.window {
		return
	}
	j.endWindow(l)
	l.window, l.offered, l.admitted = number, 0, 0
}

// endWindow counts the current window, if the key was offered its limit in it and requests were
// sent during all of it. Nine tenths are enough, because the first request comes a little after the
// beginning.
func (j *judge) endWindow(l *keyLog) {
	if l.offered < j.limit || l.window*int64(j.window) < j.begin.Add(-j.window/10).UnixNano() {
		return
	}
	ratio := float64(l.admitted) / float64(j.limit)
	if !l.later {
		l.later = true
		j.windows.First = max(j.windows.First, ratio)
		return
	}
	j.windows.Count++
	j.admitted += l.admitted
	j.windows.Worst = max(j.windows.Worst, ratio)
}

// endPoint returns the excess since the last point.
func (j *judge) endPoint() Over {
	p := j.point
	j.over.Log = max(j.over.Log, p.Log)
	j.over.Estimate = max(j.over.Estimate, p.Estimate)
	j.over.FalseDenials += p.FalseDenials
	j.point = Over{}
	return p
}

// end counts the windows that have ended.
func (j *judge) end(now time.Time) Windows {
	for _, l := range j.keys {
		if l.window < now.UnixNano()/int64(j.window) {
			j.endWindow(l)
		}
	}
	if j.windows.Count > 0 {
		j.windows.Mean = float64(j.admitted) / float64(j.windows.Count*j.limit)
	}
	return j.windows
}
