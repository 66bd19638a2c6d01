package counting_test

import (
	"fmt"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// Twelve requests of one user under a limit of ten a minute.
func ExampleCounters_Take() {
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 10, time.Minute)}
	policies, err := ratelimit.Compile(settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	counters := counting.NewCounters(0)

	now := time.Date(2026, 5, 28, 12, 0, 23, 0, time.UTC)
	for range 12 {
		key := ratelimit.Key{ClientID: "shop", Username: "alice"}
		d := counters.Take(now, key, policies.For("shop"), 1)
		if d.Rejected() {
			fmt.Println("429, Retry-After:", d.RetryAfterSeconds())
			continue
		}
		_, limit := d.Headers()
		fmt.Println("200, RateLimit:", limit)
		now = now.Add(time.Second)
	}
	// Output:
	// 200, RateLimit: "per-minute";r=9;t=38
	// 200, RateLimit: "per-minute";r=8;t=37
	// 200, RateLimit: "per-minute";r=7;t=36
	// 200, RateLimit: "per-minute";r=6;t=35
	// 200, RateLimit: "per-minute";r=5;t=34
	// 200, RateLimit: "per-minute";r=4;t=33
	// 200, RateLimit: "per-minute";r=3;t=32
	// 200, RateLimit: "per-minute";r=2;t=31
	// 200, RateLimit: "per-minute";r=1;t=30
	// 200, RateLimit: "per-minute";r=0;t=29
	// 429, Retry-After: 28
	// 429, Retry-After: 28
}

// The state of each limit after a decision.
func ExampleCounters_Take_limits() {
	settings := ratelimit.DefaultSettings()
	settings.Default.Client = []ratelimit.Limit{
		ratelimit.NewLimit("per-minute", 100, time.Minute),
		ratelimit.NewLimit("per-second", 2, time.Second),
	}
	policies, err := ratelimit.Compile(settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	d := counting.NewCounters(0).Take(time.Unix(1_622_211_780, 0), ratelimit.Key{ClientID: "batch"}, policies.For("batch"), 1)
	for _, l := range d.Limits() {
		fmt.Printf("%s: %d of %d remain; one more in %v\n", l.Limit.Name, l.Remaining, l.Limit.Requests, l.Reset)
	}
	// Output:
	// per-minute: 99 of 100 remain; one more in 1m1s
	// per-second: 1 of 2 remain; one more in 2s
}
