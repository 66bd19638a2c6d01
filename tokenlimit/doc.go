// Package tokenlimit puts rate limits before the token endpoint (RFC 6749 section 3.2) of an OAuth 2.0 authorization
// server that is written in Go, in its process. Requests are counted per client and user, which a reverse proxy that
// limits by address or by header cannot do: it does not see whose refresh token it passes on.
//
//	limits, err := tokenlimit.New(tokenlimit.Options{
//		Default: tokenlimit.Policy{
//			User:   []tokenlimit.Limit{{Requests: 10, Window: time.Minute}},
//			Client: []tokenlimit.Limit{{Requests: 60, Window: time.Minute}},
//		},
//	})
//	…
//	mux.Handle("POST /oauth2/token", limits.Handler(tokenEndpoint))
//
// What happens to a token request:
//
//  1. The client is read from HTTP Basic, from client_id in the body (a form or JSON), or from the sub of a
//     client_assertion; the user from the username of a password grant, or by the refresh token, if that was issued
//     through the same Limiter. A request that two servers could read differently, such as one with two client_id, is
//     answered with 400 invalid_request, and one beyond 64 KiB with 413.
//  2. One request is reserved. Over the limit, the answer is 429 with Retry-After, RateLimit and RateLimit-Policy
//     (draft-ietf-httpapi-ratelimit-headers), and the endpoint is not called: no code and no refresh token is used up.
//  3. The endpoint is called, with the body as it came.
//  4. If it answers 200 without an error in place of access_token, or another 2xx with an access_token, the request counts,
//     and the RateLimit fields are added. It counts against the user whom the answer names: by [SetUser], or else by the
//     claim of an id_token or of an access token that is a JWT. Any other answer does not count, so wrong secrets and guessed
//     tokens use up no quota.
//
// Scripts of every site may read the answers of the package itself (CORS), unless an outer handler has set
// Access-Control-Allow-Origin. Those of the endpoint stay as they are, but for the RateLimit fields, which are exposed where
// the endpoint lets a script read its answer.
//
// A request whose user shows only with the answer, such as that of an authorization code, is decided beforehand by
// [Policy].Total alone. Its token is issued then, so it passes also if its user has no room left ([Event].Late). A request that
// names no client passes.
//
// While it is checked, a client is not proven. Requests with credentials that have got no token yet take no room from others:
// each is decided with those under way with the same client secret, once the endpoint has refused one, and for a password grant
// with the same password; otherwise with those of its network, and some of each other one. Of a client 256 of them may be under way from one address, and two after five answers in a row
// that may be those to a wrong secret, until one gets a token or for ten minutes; what is beyond is answered with 429.
//
// Counts are in memory, of a million users and clients at most, and of this process. For counts that several processes
// share, put the command oauth-server gateway before them. The package starts no goroutine, does no I/O and logs no
// secret, and a defect in it lets requests pass, which is logged.
package tokenlimit
