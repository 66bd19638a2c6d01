// Package algorithm has the usual algorithms of rate limiting, and compares them on the same traffic with an exact log.
//
// Those that the server has (fixed, weighted, sliding, strict) are decided by the code of internal/ratelimit itself; the
// others (exact, token-bucket, leaky-bucket, leaky-queue, gcra) are short and written down here. All of them see times
// in whole milliseconds and calculate in integers, so that a decision can be repeated.
//
// # What is wrong
//
// [Run] counts wrong decisions by two definitions.
//
// By its own log: every algorithm is judged by the exact log of what it has itself admitted. With a limit of N in
// a window W, the right answer to a request at t is to admit it if fewer than N were admitted in (t-W, t]. A
// false admit is one that was admitted although there were N or more, a false denial one that was denied although
// there were fewer. So each decision is judged by itself: an algorithm that admitted one request too many
// is not wrong about all that follow.
//
// By the count of all: every request is counted, whatever becomes of it, and the algorithm's estimate
// of the last window is compared with the exact count of it. The request is wrongly allowed if the
// estimate is below the limit and the count is not, and wrongly limited the other way round; the rate
// error is by how much the estimate is off the count, in parts of the count. It is what
// Cloudflare published figures of (https://blog.cloudflare.com/counting-things-a-lot-of-different-things/).
// An algorithm without an estimate of the window, such as the token bucket, has none of these.
package algorithm
