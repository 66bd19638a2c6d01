package gateway

import (
	"net/http"
	"strings"

	"oauth-server/internal/gateway/subject"
)

// notGuessed are the errors that an upstream answers to those who are authenticated, or before it looks at who asks: so whoever
// gets one has learned nothing of a secret. false: servers answer it to a wrong secret too, with 401 (Auth0 access_denied).
//
// A public client has nothing to guess but codes, refresh tokens and passwords, for which it gets invalid_grant, too: the
// upstream bounds that, as it does without a gateway.
var notGuessed = map[string]bool{
	"invalid_grant":           true,  // RFC 6749 section 5.2; with 401 of Keycloak, for a wrong password
	"authorization_pending":   true,  // RFC 8628 section 3.5
	"slow_down":               true,  // the same
	"expired_token":           true,  // the same
	"use_dpop_nonce":          true,  // RFC 9449 section 8; with 401 of servers that take section 9 for it
	"invalid_dpop_proof":      true,  // RFC 9449 section 5
	"access_denied":           false, // RFC 8628 section 3.5
	"invalid_request":         false, // RFC 6749 section 5.2
	"invalid_scope":           false, // the same
	"unsupported_grant_type":  false, // the same
	"invalid_target":          false, // RFC 8707 section 2
	"interaction_required":    false, // OpenID Connect Core section 3.1.2.6, as of Entra ID
	"login_required":          false, // the same
	"consent_required":        false, // the same
	"temporarily_unavailable": false, // of a server that limits itself
}

// guessed reports whether an answer without a token may be that to a wrong secret: invalid_client and unauthorized_client, which
// Keycloak has for it, and what is not understood. A server that fails, or limits requests itself, has looked at none.
func guessed(status int, code string) bool {
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return false
	}
	always, known := notGuessed[code]
	return !known || !always && status == http.StatusUnauthorized
}

// refusal notes the error in an answer without a token.
func (x *tokenCall) refusal(body []byte) {
	if x.result.outcome == Failed {
		code, description := subject.Refusal(body)
		x.result.refusal, x.result.wrongSecret = code, wrongSecret(code, description)
	}
}

// wrongSecret reports whether a server says that the secret of a client is wrong. Of a public client, whose secret it may ignore,
// it never does. unauthorized_client is for a grant that a client is not to use (RFC 6749 section 5.2), and in Keycloak for both.
func wrongSecret(code, description string) bool {
	return code == "invalid_client" ||
		code == "unauthorized_client" && (strings.Contains(description, "Invalid client credentials") || strings.Contains(description, "Invalid client secret"))
}
