// Package subject determines the user of a token request from the answer of the upstream token
// endpoint, and remembers the user for the next request. A request with a refresh token or an
// authorization code does not name its user, so without this memory a gateway can count it for the
// user only afterwards.
//
//   - A [Reader] reads an answer: the user, from the id_token or from an access token that is a JWT
//     (RFC 7519), and the digest and lifetime of the new refresh token, or the error. It also reads
//     the answer of an introspection endpoint (RFC 7662) about an opaque access token.
//   - A [Memory] maps the digest of a refresh token to the user. The number of entries is bounded,
//     and they contain no pointers that the garbage collector would have to follow.
//
// The package does no I/O, reads no clock, and never verifies a signature. It does not need to,
// because the answer comes from the upstream over the gateway's own connection: an attacker who
// could forge a token in it could also send another answer. For this reason, never pass it a token
// that a client sent. Only [Answer.AccessToken] returns a token. All other results contain refresh
// tokens only as digests, and problems only as a [Reason].
//
// Example: a session of one user with rotation of refresh tokens (RFC 9700 section 4.14):
//
//	reader, _ := subject.NewReader("")                // the claim is sub
//	memory := subject.NewMemory(0)                    // a million tokens, each for 30 days
//
//	// grant_type=authorization_code; the answer has {"id_token": …, "refresh_token": "r1"}
//	a := reader.Read(answer)                          // Subject "u1", Refresh: the digest of r1
//	memory.Put(now, a.Refresh, "app", a.Subject, a.Expires(now))
//
//	// grant_type=refresh_token&refresh_token=r1; the answer has {"refresh_token": "r2"} and no id_token
//	used := subject.DigestOf("r1")
//	user, ok := memory.Get(now, used, "app")          // "u1", true: the request is counted on u1
//	a = reader.Read(answer)                           // Reason NoJWT, Refresh: the digest of r2
//	memory.Put(now, a.Refresh, "app", user, a.Expires(now))
//
// Used tokens stay in the memory. Servers accept them again for some time, or until they expire if
// the answer has no new one.
package subject
