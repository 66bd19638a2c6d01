package limiters

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// InRedis returns the kind that holds its counts in the Redis at the address.
func InRedis(address string) Maker {
	return Maker{"redis_rate", func(l Limit, _ int) (Limiter, error) {
		c := redis.NewClient(&redis.Options{Addr: address, PoolSize: 64})
		limiter := redis_rate.NewLimiter(c)
		limit := redis_rate.Limit{Rate: int(l.Requests), Burst: int(l.Requests), Period: l.Window}
		return Limiter{
			Allow: func(key string) bool { // an error denies
				res, err := limiter.Allow(context.Background(), key, limit)
				return err == nil && res.Allowed > 0
			},
			Close: c.Close,
		}, nil
	}}
}
