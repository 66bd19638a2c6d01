// Package gateway puts the limits of this server before the token endpoint of another one.
//
// A [Gateway] is a reverse proxy. Requests to a token endpoint are judged, all others pass unchanged:
//
//  1. read who asks (package tokenrequest). What the upstream could read differently is refused;
//  2. reserve one request for the best known key: the client, and the user whom a password grant names or whom its
//     refresh token leads to (package subject). Of a code, or a refresh token that was never seen, the user is not
//     known, and what counts the client over all its users decides. A denied request gets 429 and never reaches the
//     upstream, so nothing that it presents is used up;
//  3. forward the body byte for byte, and never twice. The host and where the request comes from are what the gateway says
//     ([Options].PublicURL, [Options].ClientAddr), whatever the client sent;
//  4. settle: a token counts against the user that the answer proves. On any other answer the reservation is given back.
//     So wrong secrets and guessed tokens use up no quota. Of an opaque token, whose answer shows no user, the upstream is
//     asked for the user (package introspection), after the client has its answer.
//
// What a caller that is not proven may hold meanwhile is bounded: so many requests of a client from one source at once, and
// so many of the client in all.
//
// [NewMiddleware] does the same before a token endpoint of this process; package tokenlimit is its public face. A [Judge]
// answers other proxies whether a request may pass, and counts it at once, since it does not see what comes of it; package
// envoy asks it for Envoy.
//
// A defect in the judgement never takes the upstream's clients down, unless [Options].OnError says so.
package gateway
