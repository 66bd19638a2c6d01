// Package grants decides who gets a token. It is the OAuth protocol without HTTP: it authenticates
// clients, checks each grant, asks the limiter, claims what is to be claimed, issues tokens, and
// judges tokens that are presented.
//
// A token request goes through these steps, and no later one begins before the earlier ones have
// passed (see [Service.Token]):
//
//  1. authenticate the client;
//  2. look: read the code or the refresh token, or verify the password. Owner,
//     expiry, redirect URI, PKCE and scope are checked here, and nothing is consumed.
//     Before a password is hashed, the limiter is asked without counting, and a
//     request of a user whose quota is used up is denied;
//  3. ask the limiter: the client is proven and the user is known, so no one can
//     spend another's quota, and a denied request leaves the code or the refresh
//     token as it was. Over the limit, where its policy says so, client_credentials
//     may be answered with the token that the client got last (reuse.go), or the
//     request waits for its turn (package turns) and is looked at again (wait.go);
//  4. take: claim the code and store the family that begins with it, or take the
//     family of the refresh token to its next generation, in one durable write of
//     which exactly one can succeed;
//  5. issue the tokens.
//
// Steps 4 and 5 go through package issuer, which makes the tokens with
// github.com/go-oauth2/oauth2/v4 and has the claim made before it returns them. What that library
// leaves open is closed here; each such point has a test named TestPitfall… that shows the fault in
// the stock library and its absence here.
//
// All tokens that descend from one authorization form a family. If a code or a refresh token is
// presented that was claimed before, one of the two who presented it stole it, and the whole family
// is revoked, access tokens included (RFC 9700 4.14.2).
//
// The package reads no clock but those of its [Options], never stores or logs a secret in clear,
// and never shows a client the cause of an internal error.
//
//	service, err := grants.New(grants.Options{Issuer: issuer, Clients: source, Store: store, Signer: ring, Deriver: mac})
//	answer, err := service.Token(ctx, grants.TokenRequest{
//		Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: secret},
//		GrantType:   "client_credentials",
//	})
package grants
