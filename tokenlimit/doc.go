// Package tokenlimit adds rate limits to the token endpoint (RFC 6749 section 3.2) of an OAuth 2.0
// authorization server written in Go, within its process. It counts requests per client and user. A
// reverse proxy that limits by address or header cannot do that, because it does not know the user
// of a refresh token.
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
// A token request is handled as follows:
//
//  1. The client is read from HTTP Basic, from client_id in the body (a form or JSON), or from the
//     sub of a client_assertion. The user is read from the username of a password grant, or is
//     known from the refresh token if that was issued through the same Limiter. A request that
//     servers could read differently, for example with two client_id, gets 400 invalid_request. A
//     request larger than 64 KiB gets 413.
//  2. One request is reserved. Over the limit, the answer is 429 with Retry-After, RateLimit and
//     RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers). The endpoint is not called, so no
//     code or refresh token is used up.
//  3. The endpoint is called with the original body.
//  4. The request counts if the endpoint answers 200 without an error in place of access_token, or
//     another 2xx with an access_token. The RateLimit fields are added. The request counts against
//     the user from [SetUser], or else against the user in the claim of an id_token or of a JWT
//     access token. Any other answer does not count, so wrong secrets and guessed tokens use no
//     quota.
//
// Scripts of any site may read the answers of the package itself (CORS), unless an outer handler
// has set Access-Control-Allow-Origin. Answers of the endpoint stay unchanged, except for the
// RateLimit fields. These are exposed if the endpoint lets a script read its answer.
//
// For some requests, such as an authorization code, the user is known only after the answer. Before
// the answer, only [Policy].Total applies to them. The token is already issued then, so such a
// request passes even if its user is over the limit ([Event].Late). A request that names no client
// passes.
//
// A request is unproven until its credentials have got a token. Unproven requests take no room from
// others. Once the endpoint has refused a secret of the client, an unproven request with a secret is
// decided only together with concurrent requests with the same secret. In the same way, a password
// grant is decided together with password grants with the same password. All other unproven requests
// are decided together with the unproven requests of their network, and some of each other network.
// A client may have 256 unproven requests in progress from one address. After five answers in a row
// that may mean a wrong secret, it may have only two, until one request gets a token or ten minutes
// have passed. Requests over these limits get 429.
//
// Counts are kept in memory, for at most a million users and clients, and only for this process. To
// share counts between processes, use the command oauth-server gateway in front of them. The
// package starts no goroutines, does no I/O and logs no secrets. After an internal error, requests
// pass, and the error is logged.
package tokenlimit
