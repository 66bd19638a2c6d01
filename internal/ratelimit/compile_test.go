package ratelimit_test

import (
	"fmt"
	"time"

	"oauth-server/internal/ratelimit"
)

// The error has every problem, with the path of its field.
func ExampleCompile() {
	settings := ratelimit.DefaultSettings()
	settings.Clients = map[string]ratelimit.Policy{"shop": {User: []ratelimit.Limit{
		{Name: "per-minute", Requests: 0, Window: time.Minute, Frames: 7, Algorithm: ratelimit.Sliding, SoftRatio: 0.8, OnOutage: ratelimit.Share},
	}}}
	_, err := ratelimit.Compile(settings)
	fmt.Println(err)
	// Output:
	// clients.shop.user[0].requests: 0 is not between 1 and 1000000000
	// clients.shop.user[0].frames: 7 frames do not divide a window of 1m0s into whole milliseconds
}
