// Package issuer makes tokens with the Manager of github.com/go-oauth2/oauth2/v4. No other package
// imports that library.
//
// The Manager generates both tokens, has them stored, and returns them only if that succeeded. So a
// signing failure claims nothing, and a token that could not be stored never leaves the process.
//
// The Manager could also look up a code or a refresh token, compare it and remove it, but its order
// of operations loses codes and lets two requests redeem the same code (docs/adr/0001). So this
// package uses only the two grants that leave the proof to the caller: password if a user is
// involved, and client_credentials otherwise. The Manager repeats none of the caller's checks
// except the client lookup, which [manage.Manager] requires. The adapter answers that lookup from
// the request, without a secret, so no secret is compared a second time. This package checks no
// expiry, because the caller has the clock.
//
//	tokens := issuer.New(ring)
//	access, refresh, err := tokens.Issue(ctx, issuer.Request{Claims: claims, Refresh: secret.New(), Store: store})
package issuer
