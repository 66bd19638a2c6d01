package httpapi

import (
	"net/http"

	"oauth-server/internal/grants"
)

// This file writes answers for the token endpoint of another server, behind the gateway.

// WriteLimited writes the answer to a request over a limit, with this error code, like the token
// endpoint of this server. It sets no error_uri, because the paths belong to the other server.
// origin is the Origin of the calling script, if any. That script may read the answer.
func WriteLimited(w http.ResponseWriter, origin string, limited *grants.LimitedError, code grants.ErrorCode) error {
	a := answerToLimited(limited, code, "")
	a.setRetry(w.Header())
	return a.write(w, origin)
}

// WriteError writes an OAuth error (RFC 6749 5.2) with this status. origin is as for WriteLimited.
func WriteError(w http.ResponseWriter, origin string, status int, code grants.ErrorCode, description string) error {
	a := answer{status: status, body: oauthError{Code: code, Description: describe(description)}}
	return a.write(w, origin)
}

// SetRateLimit adds the RateLimit fields to an answer, unless it already has any. If scripts of
// another site may read the answer, they may also read the fields.
func SetRateLimit(h http.Header, r grants.RateLimit) {
	if _, limit := h["Ratelimit"]; limit {
		return
	}
	if _, policy := h["Ratelimit-Policy"]; policy {
		return
	}
	setRateLimit(h, r)
	if r != (grants.RateLimit{}) && h[allowOriginField] != nil {
		h.Add(exposeHeadersField, limitFields)
	}
}

// write writes the status and the body.
func (a *answer) write(w http.ResponseWriter, origin string) error {
	allowOrigin(w.Header(), origin)
	beginJSON(w, a.status)
	_, err := w.Write(a.encoded())
	return err
}
