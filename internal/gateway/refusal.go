package gateway

import (
	"net/http"
	"strings"

	"oauth-server/internal/gateway/subject"
)

// notGuessed holds error codes that a client gets only after authentication, or before the upstream
// checks the secret. Such an answer says nothing about a secret. The value is false if some servers
// also send the code for a wrong secret, with status 401 (for example Auth0 with access_denied).
//
// A public client has no secret to guess. It can guess codes, refresh tokens and passwords, and
// gets invalid_grant for them. Limiting that is up to the upstream, as without a gateway.
var notGuessed = map[string]bool{
	"invalid_grant":           true,  // RFC 6749 section 5.2; Keycloak sends it with 401 for a wrong password
	"authorization_pending":   true,  // RFC 8628 section 3.5
	"slow_down":               true,  // the same
	"expired_token":           true,  // the same
	"use_dpop_nonce":          true,  // RFC 9449 section 8; with 401 by servers that apply section 9
	"invalid_dpop_proof":      true,  // RFC 9449 section 5
	"access_denied":           false, // RFC 8628 section 3.5
	"invalid_request":         false, // RFC 6749 section 5.2
	"invalid_scope":           false, // the same
	"unsupported_grant_type":  false, // the same
	"invalid_target":          false, // RFC 8707 section 2
	"interaction_required":    false, // OpenID Connect Core section 3.1.2.6; sent by Entra ID
	"login_required":          false, // the same
	"consent_required":        false, // the same
	"temporarily_unavailable": false, // the server limits requests itself
}

// guessed reports whether an answer without a token may be the answer to a wrong secret:
// invalid_client, unauthorized_client (Keycloak sends it for wrong secrets), or an unknown error. A
// server that fails or limits requests has not checked the secret.
func guessed(status int, code string) bool {
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return false
	}
	always, known := notGuessed[code]
	return !known || !always && status == http.StatusUnauthorized
}

// refused records the error in an answer without a token.
func (x *tokenCall) refused(a *subject.Answer) {
	x.result.refusal, x.result.wrongSecret = a.Error, wrongSecret(a.Error, a.Description)
}

// wrongSecret reports whether the error says that the client's secret is wrong. Servers never say
// so for a public client, because they may ignore its secret. unauthorized_client means that the
// client may not use the grant (RFC 6749 section 5.2), but Keycloak sends it for both.
func wrongSecret(code, description string) bool {
	return code == "invalid_client" ||
		code == "unauthorized_client" && (strings.Contains(description, "Invalid client credentials") || strings.Contains(description, "Invalid client secret"))
}
