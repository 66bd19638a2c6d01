package limiters

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// InRedis returns the kinds that hold their counts in the Redis at the address.
func InRedis(address string) []Maker {
	with := func(algorithm func(c *redis.Client, l Limit) decide) func(Limit, int) (Limiter, error) {
		return func(l Limit, _ int) (Limiter, error) {
			c := redis.NewClient(&redis.Options{Addr: address, PoolSize: 64})
			decide := algorithm(c, l)
			return Limiter{
				Allow: func(key string) bool { // an error denies
					ok, err := decide(context.Background(), key, time.Now())
					return ok && err == nil
				},
				Close: c.Close,
			}, nil
		}
	}
	return []Maker{{"redis_rate", with(redisRate)}, {"sorted-set", with(sortedSet)}, {"two-counters", with(twoCounters)}}
}

// decide asks Redis whether one more request of the key passes at the time.
type decide func(ctx context.Context, key string, now time.Time) (bool, error)

func redisRate(c *redis.Client, l Limit) decide {
	limiter := redis_rate.NewLimiter(c)
	limit := redis_rate.Limit{Rate: int(l.Requests), Burst: int(l.Requests), Period: l.Window}
	return func(ctx context.Context, key string, _ time.Time) (bool, error) {
		res, err := limiter.Allow(ctx, key, limit)
		return err == nil && res.Allowed > 0, err
	}
}

// oneOfEach admits a request if the set has room, and adds its time to the set: an exact log.
var oneOfEach = redis.NewScript(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', tonumber(ARGV[1]) - tonumber(ARGV[2]))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`)

// sortedSet is the rolling window in a sorted set: an entry for each admitted request, in one script, so that it
// takes one round trip.
func sortedSet(c *redis.Client, l Limit) decide {
	return func(ctx context.Context, key string, now time.Time) (bool, error) {
		member := strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // G404: only has to be unique
		return oneOfEach.Run(ctx, c, []string{"z:" + key},
			now.UnixMicro(), l.Window.Microseconds(), l.Requests, member, l.Window.Milliseconds()).Bool()
	}
}

// weighted admits by the count of the present window plus the previous count, weighted by the overlap of the
// previous window with the last window's length.
var weighted = redis.NewScript(`
local counts = redis.call('MGET', KEYS[1], KEYS[2])
local current, previous = tonumber(counts[1] or '0'), tonumber(counts[2] or '0')
if math.floor(current + previous * tonumber(ARGV[1])) + 1 > tonumber(ARGV[2]) then return 0 end
if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1`)

// twoCounters is the sliding window over two counters, our formula, in one script.
func twoCounters(c *redis.Client, l Limit) decide {
	return func(ctx context.Context, key string, now time.Time) (bool, error) {
		frame := now.UnixNano() / int64(l.Window)
		left := 1 - float64(now.UnixNano()%int64(l.Window))/float64(l.Window)
		name := "c:{" + key + "}:"
		return weighted.Run(ctx, c, []string{name + strconv.FormatInt(frame, 36), name + strconv.FormatInt(frame-1, 36)},
			left, l.Requests, 2*l.Window.Milliseconds()).Bool()
	}
}
