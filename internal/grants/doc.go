// Package grants implements the OAuth protocol without HTTP. It authenticates clients, checks each
// grant, applies rate limits, claims codes and refresh tokens, issues tokens, and checks the tokens
// that clients and APIs present.
//
// A token request goes through these steps in order. Each step begins only after the previous ones
// have passed (see [Service.Token]):
//
//  1. authenticate the client;
//  2. look: read the code or the refresh token, or verify the password. This step checks owner,
//     expiry, redirect URI, PKCE and scope, and consumes nothing. Before it hashes a password,
//     it asks the limiter without counting, and denies the request if the user's quota is used up;
//  3. ask the limiter. The client has authenticated and the user is known, so no one can spend
//     another's quota, and a denied request leaves the code or the refresh token unused. If the
//     policy says so, a client_credentials request over the limit gets the client's last token
//     again (reuse.go), or the request is queued (package limiter) and then looked at again (admit.go);
//  4. take: claim the code and store its new family, or move the family of the refresh token to
//     the next generation. This is one durable write, and exactly one request can succeed;
//  5. issue the tokens.
//
// Steps 4 and 5 go through package issuer, which makes the tokens with
// github.com/go-oauth2/oauth2/v4 and claims the grant before it returns them. This package closes
// the gaps of that library's own server. Each gap has a test named TestPitfall….
//
// All tokens that descend from one authorization form a family. If a code or a refresh token is
// presented again after it was claimed, one of the two parties stole it, so the whole family is
// revoked, access tokens included (RFC 9700 4.14.2).
//
// The package reads only the clocks in its [Options], never stores or logs a secret in clear, and
// never shows a client the cause of an internal error.
//
//	service, err := grants.New(grants.Options{
//		Issuer: issuer, Clients: source, Store: store, Users: users, Stored: registrations, Signer: ring, Deriver: mac,
//	})
//	answer, err := service.Token(ctx, grants.TokenRequest{
//		Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: secret},
//		GrantType:   "client_credentials",
//	})
package grants
