package envoy

import (
	"math"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestLimitOf checks windows in the units of the protocol.
func TestLimitOf(t *testing.T) {
	for _, tc := range []struct {
		window time.Duration
		unit   ratelimitv3.RateLimitResponse_RateLimit_Unit
		times  uint32 // 0: not set
	}{
		{time.Second, ratelimitv3.RateLimitResponse_RateLimit_SECOND, 0},
		{90 * time.Second, ratelimitv3.RateLimitResponse_RateLimit_SECOND, 90},
		{time.Minute, ratelimitv3.RateLimitResponse_RateLimit_MINUTE, 0},
		{10 * time.Minute, ratelimitv3.RateLimitResponse_RateLimit_MINUTE, 10},
		{time.Hour, ratelimitv3.RateLimitResponse_RateLimit_HOUR, 0},
		{24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_DAY, 0},
		{30 * 24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_DAY, 30},
		{7 * 24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_WEEK, 0},
	} {
		l := ratelimit.NewLimit("x", math.MaxInt64, tc.window)
		got := limitOf(&l)
		check.Equal(t, "unit of "+tc.window.String(), got.GetUnit(), tc.unit)
		check.Equal(t, "multiplier of "+tc.window.String(), got.GetUnitMultiplier().GetValue(), tc.times)
		check.Equal(t, "requests", got.GetRequestsPerUnit(), math.MaxUint32)
	}
	l := ratelimit.NewLimit("x", 1, 1500*time.Millisecond)
	check.Equal(t, "a window of milliseconds", limitOf(&l) == nil, true)
}
