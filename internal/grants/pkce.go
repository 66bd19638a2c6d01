package grants

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/oautherr"
)

// methodS256 is the only code_challenge_method. The method plain does not protect against an
// attacker who can read the authorization request (RFC 9700 2.1.1).
const methodS256 = "S256"

// challengeLength is the length of an S256 challenge: SHA-256 in base64url.
const challengeLength = 43

// checkChallenge checks the PKCE parameters of an authorization request (RFC 7636 4.3). A missing
// method means plain in that RFC, so it is refused.
func checkChallenge(client *clientcfg.Client, challenge, method string) *Error {
	switch {
	case challenge == "" && method != "":
		return fail(oautherr.InvalidRequest, "The parameter code_challenge is missing.")
	case challenge == "" && client.NeedsPKCE():
		return fail(oautherr.InvalidRequest, "The parameter code_challenge is missing: this client must use PKCE (RFC 7636).")
	case challenge == "":
		return nil
	case method != methodS256:
		return fail(oautherr.InvalidRequest, "The code_challenge_method must be S256.")
	case len(challenge) != challengeLength || !allUnreserved(challenge):
		return fail(oautherr.InvalidRequest, "The code_challenge is not a base64url SHA-256 hash.")
	}
	return nil
}

// checkVerifier checks the code_verifier of a token request against the code's challenge (RFC 7636
// 4.6). It also refuses a verifier for a code without a challenge, because an attacker may have
// removed the challenge from the authorization request (RFC 9700 2.1.1, downgrade).
func checkVerifier(challenge, verifier string) *Error {
	switch {
	case challenge == "" && verifier == "":
		return nil
	case challenge == "":
		return fail(oautherr.InvalidGrant, "The authorization request had no code_challenge, so a code_verifier cannot be right.")
	case verifier == "":
		return fail(oautherr.InvalidGrant, "The parameter code_verifier is missing.")
	case len(verifier) < 43 || len(verifier) > 128 || !allUnreserved(verifier):
		return fail(oautherr.InvalidGrant, "The code_verifier needs 43 to 128 unreserved characters.")
	}
	sum := sha256.Sum256([]byte(verifier))
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	if subtle.ConstantTimeCompare([]byte(want), []byte(challenge)) != 1 {
		return fail(oautherr.InvalidGrant, "The code_verifier does not fit the code_challenge.")
	}
	return nil
}

// allUnreserved reports whether s has only unreserved characters of RFC 3986 2.3, as RFC 7636 4.1
// requires.
func allUnreserved(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '.', c == '_', c == '~':
		default:
			return false
		}
	}
	return true
}
