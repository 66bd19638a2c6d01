package workload

import (
	"math/rand/v2"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// The behaviours.
const (
	Ignore           = "ignore"
	Hammer           = "hammer"
	RetryAfter       = "retry-after"
	RetryAfterJitter = "retry-after-jitter"
	Backoff          = "backoff"
	XOAuth2          = "x-oauth2"
	Authlib          = "authlib"
	OpenIDClient     = "openid-client"
	Considerate      = "considerate"
)

// Behaviour describes how clients request tokens, and how they react to a denial.
type Behaviour struct {
	Name, About string
	Source      string // source of the description of a library's behaviour

	reuses bool
	early  time.Duration // a token is not reused this long before its end
	// retry returns the wait before the request is sent again; nil: the client gives up.
	retry func(r *rand.Rand, attempt int, a traffic.Answer) time.Duration
}

// every reports whether calls and requests correspond one to one.
func (b *Behaviour) every() bool { return !b.reuses && b.retry == nil }

// Behaviours returns all behaviours.
func Behaviours() []Behaviour {
	return []Behaviour{
		{Name: Ignore, About: "a token for every call; a call that is denied one is given up"},
		{Name: Hammer, About: "a token for every call; a request that is denied is sent again each second", retry: hammer},
		{Name: RetryAfter, About: "a token for every call; a request that is denied is sent again after Retry-After", retry: obey},
		{Name: RetryAfterJitter, About: "likewise, and up to as long again, at random", retry: obeyWithJitter},
		{
			Name: Backoff, About: "a token for every call; a request that is denied is sent again after up to 2, 4, 8 … 64 seconds, at random (full jitter)",
			Source: "https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/", retry: backOff,
		},
		{
			Name: XOAuth2, About: "golang.org/x/oauth2: ReuseTokenSource keeps a token until 10 seconds before its end; a denied request is the error of the call",
			Source: "https://github.com/golang/oauth2/blob/v0.37.0/token.go (defaultExpiryDelta), oauth2.go (reuseTokenSource)",
			reuses: true, early: 10 * time.Second,
		},
		{
			Name: Authlib, About: "Authlib: ensure_active_token keeps a token until 60 seconds before its end; a denied request is the error of the call",
			Source: "https://github.com/lepture/authlib, authlib/oauth2/rfc6749/wrappers.py (is_expired), authlib/oauth2/client.py (ensure_active_token)",
			reuses: true, early: time.Minute,
		},
		{
			Name: OpenIDClient, About: "openid-client for Node.js keeps no token itself; its caller asks expired(), which is true from the end on",
			Source: "https://github.com/panva/openid-client, docs/README.md of version 5 (TokenSet, expired)", reuses: true,
		},
		{
			Name: Considerate, About: "a token is kept until a minute before its end; after a denial all calls wait for Retry-After, and up to as long again",
			reuses: true, early: time.Minute, retry: obeyWithJitter,
		},
	}
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
