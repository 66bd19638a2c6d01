package decision

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// inRedis returns the kind that holds its counts in the Redis at the address.
func inRedis(address string) maker {
	return maker{"redis_rate", func(l quota, _ int) (limiter, error) {
		c := redis.NewClient(&redis.Options{Addr: address, PoolSize: 64})
		asked := redis_rate.NewLimiter(c)
		limit := redis_rate.Limit{Rate: int(l.Requests), Burst: int(l.Requests), Period: l.Window}
		return limiter{
			Allow: func(key string) bool { // an error denies
				res, err := asked.Allow(context.Background(), key, limit)
				return err == nil && res.Allowed > 0
			},
			Close: c.Close,
		}, nil
	}}
}
