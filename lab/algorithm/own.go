package algorithm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/simulate/traffic"
)

// own is an algorithm that internal/ratelimit implements, run on one instance.
type own struct {
	counters *counting.Counters
	limits   *ratelimit.Effective
}

func newOwn(name string, l Limit) *own {
	limit := ratelimit.NewLimit("limit", l.Requests, l.Window)
	switch base, frames, several := strings.Cut(name, "-"); {
	case name == Fixed:
		limit.Algorithm = ratelimit.Fixed
	case name == Weighted:
		limit.Algorithm = ratelimit.Weighted
	case name == Strict:
		limit.MakeStrict()
	case several && base == Sliding:
		limit.Frames, _ = strconv.Atoi(frames) // 0 is refused below
	case name != Sliding:
		panic(fmt.Sprintf("algorithm: there is no %q", name))
	}
	e, err := ratelimit.Enforced(limit, limit)
	if err != nil {
		panic(fmt.Sprintf("algorithm: %s: %v", name, err))
	}
	return &own{counters: counting.NewCounters(maxKeys), limits: e}
}

// maxKeys is the maximum number of keys in a comparison. With more, keys would share counters, which
// would distort it.
const maxKeys = 4_000_000

// Admit implements [Algorithm].
func (o *own) Admit(k Key, ms int64) traffic.Answer {
	d := o.take(k, ms)
	if d.Rejected() {
		return traffic.Answer{Outcome: traffic.Denied, RetryAfter: d.RetryAfter}
	}
	return traffic.Answer{Outcome: traffic.Admitted}
}

// Estimate implements [Estimator].
func (o *own) Estimate(k Key, ms int64) float64 {
	for _, u := range o.counters.Usage(time.UnixMilli(ms), k.Key) {
		return u.Estimate
	}
	return 0
}

// Count implements [Estimator].
func (o *own) Count(k Key, ms int64) { o.take(k, ms) }

func (o *own) take(k Key, ms int64) ratelimit.Decision {
	return o.counters.Take(time.UnixMilli(ms), k.Key, o.limits, 1)
}
