// Package algorithm implements the usual rate-limiting algorithms. It runs them on the same traffic
// and compares each with an exact log.
//
// The server's own algorithms (fixed, weighted, sliding, strict) run the code of internal/ratelimit.
// The others (exact, token-bucket, leaky-bucket, leaky-queue, gcra) are short and implemented here.
// All of them take times in whole milliseconds and calculate in integers, which makes decisions
// reproducible.
//
// # Wrong decisions
//
// [Run] counts wrong decisions by two definitions.
//
// The first uses the algorithm's own log: an exact log of the requests that the algorithm itself has
// admitted. With a limit of N in a window W, a request at t should be admitted if fewer than N were
// admitted in (t-W, t]. A false admit is a request admitted although there were N or more. A false
// denial is a request denied although there were fewer. Each decision is checked on its own: after
// one request too many, the later decisions do not count as wrong too.
//
// The second uses the count of all requests, admitted or not. It compares the algorithm's estimate
// for the last window with the exact count. A request is wrongly allowed if the estimate is within
// the limit and the count is over it, and wrongly limited in the opposite case. The rate error is the
// difference between the estimate and the count, as a fraction of the count. Cloudflare published
// these figures (https://blog.cloudflare.com/counting-things-a-lot-of-different-things/). They do not
// exist for algorithms that do not estimate the window, such as the token bucket.
package algorithm
