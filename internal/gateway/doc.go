// Package gateway enforces rate limits in front of the token endpoint of another server.
//
// A [Gateway] is a reverse proxy. It checks requests to a token endpoint against the limits and
// passes all other requests unchanged. A token request takes these steps:
//
//  1. Parse the client and the user (package tokenrequest). The gateway refuses a request that the
//     upstream might parse differently.
//  2. Reserve one request for the best known key: the client and the user. The user comes from the
//     username of a password grant or from an earlier answer with the refresh token (package
//     subject). If the user is unknown, as with a code or a new refresh token, the limits of the
//     client over all its users decide. A denied request gets 429 and is not forwarded, so its code
//     or refresh token stays unused.
//  3. Forward the body byte for byte, and never twice. The gateway sets the host and the client
//     address ([Options].PublicURL, [Options].ClientAddr) and removes the values that the client
//     sent.
//  4. Settle: a token counts against the user in the answer. Any other answer cancels the
//     reservation, so wrong secrets and guessed tokens use no quota. If the token is opaque and the
//     answer shows no user, the gateway asks the upstream for the user (package introspection)
//     after the client has its answer.
//
// The gateway bounds the concurrent requests of a client that is not proven yet, for each source
// address and in total.
//
// [NewMiddleware] does the same for a token endpoint in this process. Package tokenlimit is its
// public API. A [Decider] tells other proxies whether a request may pass. It counts the request at
// once, because it does not see the answer. Package envoy connects it to Envoy.
//
// If the gateway itself fails to check a request, for example because of a panic, the request
// passes, unless [Options].OnError is Deny.
package gateway
