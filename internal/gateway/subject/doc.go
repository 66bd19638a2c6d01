// Package subject finds out which user a token request was for, from what the upstream token endpoint
// answers, and remembers it for the next request. A request with a refresh token or an authorization
// code does not name its user, so a gateway can count it on that user only afterwards.
//
//   - A [Reader] reads a successful answer: the user, from the id_token or from an access token that is
//     a JWT (RFC 7519), and the digest and the lifetime of the new refresh token. It also reads what an
//     introspection endpoint (RFC 7662) says of an access token that is none.
//   - A [Memory] leads from the digest of a refresh token to the user. It is bounded in entries and
//     holds no pointers that the garbage collector would have to follow.
//
// The package does no I/O, reads no clock, and never verifies a signature: an answer is what the
// upstream sent over the gateway's own connection, so an attacker who could forge a token in it could as well
// send another answer. It must therefore never be given a token that a client sent. A token appears in
// no result but that of [AccessToken]: refresh tokens only as digests, problems only as a [Reason].
//
// An example, a session of one user with rotation of refresh tokens (RFC 9700 section 4.14):
//
//	reader, _ := subject.NewReader("")                // the claim is sub
//	memory := subject.NewMemory(subject.Options{})    // a million tokens, each for 30 days
//
//	// grant_type=authorization_code; the answer has {"id_token": …, "refresh_token": "r1"}
//	claims := reader.Read(answer)                     // Subject "u1", Refresh: the digest of r1
//	memory.Put(now, claims.Refresh, "app", claims.Subject, claims.Expires(now))
//
//	// grant_type=refresh_token&refresh_token=r1; the answer has {"refresh_token": "r2"} and no id_token
//	used := subject.DigestOf("r1")
//	user, ok := memory.Get(now, used, "app")          // "u1", true: the request is counted on u1
//	claims = reader.Read(answer)                      // Reason NoJWT, Refresh: the digest of r2
//	memory.Put(now, claims.Refresh, "app", user, claims.Expires(now))
//
// Used tokens stay: servers accept them again for some time, or for as long as they live, if the answer has no new one.
package subject
