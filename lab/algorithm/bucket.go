package algorithm

import (
	"time"

	"oauth-server/internal/simulate/traffic"
)

// The buckets calculate in parts of a request. With N requests in a window of W milliseconds, a
// request is W parts, and N parts flow in or out in each millisecond. All values are therefore
// integers, below 2^62 for every valid limit.

// tokenBucket admits a request if the bucket has a token for it. A bucket starts full, with as many
// tokens as the limit.
type tokenBucket struct {
	limit   Limit
	buckets []tokens
}

type tokens struct {
	missing int64 // parts until the bucket is full
	at      int64
}

// Admit implements [Algorithm].
func (t *tokenBucket) Admit(k Key, ms int64) traffic.Answer {
	b, window := of(&t.buckets, k.Number), t.limit.Window.Milliseconds()
	held := t.limit.Requests*window - drained(b.missing, ms-b.at, t.limit.Requests)
	if held < window {
		return denied(ceil(window-held, t.limit.Requests))
	}
	b.missing, b.at = t.limit.Requests*window-(held-window), ms
	return traffic.Answer{Outcome: traffic.Admitted}
}

// drained returns how many of parts are left after ms milliseconds, if n flow out in each millisecond.
func drained(parts, ms, n int64) int64 {
	if ms > parts/n {
		return 0
	}
	return parts - ms*n
}

// leakyQueue adds each request to a bucket that holds as many requests as the limit and leaks at the rate of the limit. It
// denies requests that do not fit, and delays the others until all earlier ones have leaked, like nginx's limit_req with a
// burst of one less (https://nginx.org/en/docs/http/ngx_http_limit_req_module.html).
type leakyQueue struct {
	limit   Limit
	buckets []level
}

type level struct{ parts, at int64 }

// Admit implements [Algorithm].
func (l *leakyQueue) Admit(k Key, ms int64) traffic.Answer {
	b, window := of(&l.buckets, k.Number), l.limit.Window.Milliseconds()
	parts := drained(b.parts, ms-b.at, l.limit.Requests)
	if over := parts + window - l.limit.Requests*window; over > 0 {
		return denied(ceil(over, l.limit.Requests))
	}
	b.parts, b.at = parts+window, ms
	if wait := ceil(parts, l.limit.Requests); wait > 0 {
		return traffic.Answer{Outcome: traffic.Delayed, Wait: time.Duration(wait) * time.Millisecond}
	}
	return traffic.Answer{Outcome: traffic.Admitted}
}
