package workload

import (
	"math/rand/v2"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// The behaviours of clients.
const (
	// Ignore requests a token for every call, and gives a denied call up.
	Ignore = "ignore"
	// Hammer requests a token for every call, and sends a denied request again each second.
	Hammer = "hammer"
	// RetryAfter requests a token for every call, and sends a denied request again after Retry-After.
	RetryAfter = "retry-after"
	// RetryAfterJitter is RetryAfter, with a wait that is up to twice as long, at random.
	RetryAfterJitter = "retry-after-jitter"
	// Backoff requests a token for every call, and sends a denied request again after up to 2, 4, 8 …
	// 64 seconds, at random (full jitter). See
	// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
	Backoff = "backoff"
	// XOAuth2 is golang.org/x/oauth2: ReuseTokenSource keeps a token until 10 seconds before its end. A
	// denied request is the error of the call. See defaultExpiryDelta in token.go and reuseTokenSource in
	// oauth2.go of v0.37.0.
	XOAuth2 = "x-oauth2"
	// Authlib's ensure_active_token keeps a token until 60 seconds before its end. A denied request is the
	// error of the call. See https://github.com/lepture/authlib, is_expired in
	// authlib/oauth2/rfc6749/wrappers.py and ensure_active_token in authlib/oauth2/client.py.
	Authlib = "authlib"
	// OpenIDClient is openid-client for Node.js. It keeps no token itself. Its caller asks expired(), which
	// is true from the end on. See https://github.com/panva/openid-client, docs/README.md of version 5.
	OpenIDClient = "openid-client"
	// Considerate keeps a token until a minute before its end. After a denial all calls wait for
	// Retry-After, and up to as long again.
	Considerate = "considerate"
)

// behaviour is how clients request tokens, and how they react to a denial.
type behaviour struct {
	reuses bool
	early  time.Duration // a token is not reused this long before its end
	// retry returns the wait before the request is sent again; nil: the client gives up.
	retry func(r *rand.Rand, attempt int, a traffic.Answer) time.Duration
}

// every reports whether calls and requests correspond one to one.
func (b *behaviour) every() bool { return !b.reuses && b.retry == nil }

var behaviours = map[string]behaviour{
	Ignore:           {},
	Hammer:           {retry: hammer},
	RetryAfter:       {retry: obey},
	RetryAfterJitter: {retry: obeyWithJitter},
	Backoff:          {retry: backOff},
	XOAuth2:          {reuses: true, early: 10 * time.Second},
	Authlib:          {reuses: true, early: time.Minute},
	OpenIDClient:     {reuses: true},
	Considerate:      {reuses: true, early: time.Minute, retry: obeyWithJitter},
}

func hammer(*rand.Rand, int, traffic.Answer) time.Duration { return time.Second }

// obey waits as long as the Retry-After header says, which is in whole seconds.
func obey(_ *rand.Rand, _ int, a traffic.Answer) time.Duration {
	return max((a.RetryAfter + time.Second - 1).Truncate(time.Second), time.Second)
}

func obeyWithJitter(r *rand.Rand, n int, a traffic.Answer) time.Duration {
	wait := obey(r, n, a)
	return wait + time.Duration(r.Float64()*float64(wait))
}

const longestBackoff = 64 * time.Second

func backOff(r *rand.Rand, attempt int, _ traffic.Answer) time.Duration {
	most := longestBackoff
	if attempt < 6 {
		most = time.Second << attempt
	}
	return time.Duration(r.Float64() * float64(most))
}
