// Package issuer makes tokens with the Manager of github.com/go-oauth2/oauth2/v4. No other package
// imports that library.
//
// The Manager does what it is good for: it has both tokens made, then stored, and returns them only
// if they were stored. So a failure to sign claims nothing, and a token whose storing failed never
// leaves the process.
//
// It would also look up a code or a refresh token, compare it and remove it, but in an order that
// loses codes and lets two requests redeem the same one (docs/adr/0001). It is therefore asked for
// the two grants whose proof it leaves to its caller: password where a user is involved,
// client_credentials where none is. Of what the caller has checked, it repeats nothing but the
// look-up of the client, which [manage.Manager] cannot do without; the answer comes from the
// request and holds no secret, so no secret is compared a second time. No expiry is judged here:
// the caller has the clock.
//
//	tokens := issuer.New(ring)
//	access, refresh, err := tokens.Issue(ctx, issuer.Request{Claims: claims, Refresh: secret.New(), Store: store})
package issuer
